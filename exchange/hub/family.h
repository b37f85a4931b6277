// Internal: families of published models, one row of data each. A row lists the tensors that write to the residual
// stream or read from it; with a config.json it becomes the description that `convert --spec` takes. Names are the ones
// that transformers' save_pretrained writes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/hub/folder.h"

namespace isonorm::hub {

// All names and patterns begin after the stem, except `heads` and `beside`. A file with several streams has a row for
// each, with the same type.
struct Family {
  struct When {
    std::string_view key;  // a flag of config.json
    bool is;
    bool otherwise;  // the program's default if the key is missing
  };
  struct Writer {
    std::string_view pattern;
    int dim;                      // the stream's axis
    bool optional = false;        // not every model of the family has it
    std::string_view scale = {};  // the layer scale on its output
    std::string_view norm = {};   // embedding table: the norm between it and the stream
    std::vector<When> when = {};
    bool bare = false;  // not every model of the family has the scale
  };
  struct Reader {
    std::string_view norm;
    int dim;
    std::vector<std::string_view> layers;
    std::vector<When> when = {};
  };
  struct Refused {
    std::string_view key, value;  // pattern of the JSON value; empty: the key is missing
    std::string_view why;
  };
  struct Allowed {
    std::string_view key;
    std::vector<std::string_view> values;  // as JSON; if the key is there, any other value is refused
    std::string_view why;
  };
  struct Absent {
    std::string_view pattern;  // with the stem or without
    std::vector<When> when = {};
  };

  // "model_type" of config.json. timm has none: a pattern of "timm/" and its "architecture". The first
  // matching row is used.
  std::string_view type;
  std::string_view stream = {};        // name of the stream, if the file has several
  std::string_view config = {};        // the object of config.json that describes it; empty: the whole file
  std::string_view width, eps, depth;  // keys of config.json; eps, depth: empty if there is none
  double eps_otherwise = 1e-5;
  std::vector<std::string_view> stems;  // possible prefixes of the names in a file; the first that fits is used
  std::vector<Writer> writers;          // the first one determines the stem, and is the table of a tied head
  std::vector<Reader> readers;
  std::string_view last;                 // the norm that the heads read through
  std::vector<std::string_view> bodies;  // architectures that return the rows of the last norm, which therefore stays
  std::vector<std::string_view> models = {};  // architectures with a head; with or without if also in bodies
  std::vector<std::string_view> heads = {};
  std::string_view pooled = {};  // replaces `last` in models that have this norm; it reads a mean of rows
  int64_t parts = 1;             // number of rows side by side in a head's input
  std::string_view entry = {};   // the module whose input rows have a mean (Layout::recentre)
  bool tied = false;             // default of "tie_word_embeddings": the head is the first writer's table
  bool apart = false;            // the head is never the table, whatever "tie_word_embeddings" says
  bool plus_one = false;         // gain - 1 is stored
  bool plain = false;            // norms have no gains; false: each has one
  std::vector<std::string_view> off_stream = {};
  std::vector<std::string_view> needed = {};  // tensors of off_stream that every model has
  std::vector<std::string_view> beside = {};  // like off_stream, without the stem
  std::vector<Refused> refused = {};
  std::vector<Allowed> allowed = {};
  std::vector<Absent> absent = {};  // tensors that the program would ignore
};

std::span<const Family> text_families();
std::span<const Family> other_families();  // images, speech, several streams

// Returns the description of the model in a folder, as JSON. In a converted folder the readers may contain the norms'
// gains and biases. Throws if no row has this family, with the reason if it is known; if the row does not have the
// architecture; if config.json has a value that the family refuses; if no stem fits; if a layer lacks a tensor or has
// one that the program would ignore; or if a tied head has a tensor of its own whose numbers differ from the table's.
std::string describe(const Folder& folder);

}  // namespace isonorm::hub
