// Internal: families of published models, a row of data each: how the tensors of such a folder hang on the residual stream.
// A row and a config.json give the description that `convert --spec` takes. Names: those that transformers writes
// (save_pretrained) and the hub's files have.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/folder.h"

namespace isonorm::hub {

// Names and patterns stand behind the stem, but for heads. Several rows of one type are several streams of one file.
struct Family {
  struct When {
    std::string_view key;  // a flag of config.json
    bool is;
    bool otherwise;  // what the program takes where the key is not there
  };
  struct Writer {
    std::string_view pattern;
    int dim;                      // the stream's axis
    bool optional = false;        // not every model of the family has it
    std::string_view scale = {};  // the layer scale on its output
    std::string_view norm = {};   // of a table: what its rows go through to the stream
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
    std::string_view key, value;  // a pattern of what JSON has; empty: it is not there
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

  // "model_type" of config.json; of timm's, which has none, a pattern of "timm/" and its "architecture". The first that fits counts.
  std::string_view type;
  std::string_view stream = {};        // its name, of one of several
  std::string_view config = {};        // the object of config.json that is about it; empty: the whole
  std::string_view width, eps, depth;  // keys of config.json; eps, depth: empty where it says nothing
  double eps_otherwise = 1e-5;
  std::vector<std::string_view> stems;  // what files have before the names: the first that fits counts
  std::vector<Writer> writers;          // the first is what tells the stem, and of a tied head the table
  std::vector<Reader> readers;
  std::string_view last;                      // norm, which the heads read through
  std::vector<std::string_view> bodies;       // architectures that give the rows of the last norm, which stays as it is
  std::vector<std::string_view> models = {};  // architectures with one of the heads; what is both may have one
  std::vector<std::string_view> heads = {};
  std::string_view pooled = {};  // the last norm of models that have this one: it reads a mean of rows
  int64_t parts = 1;             // rows that a head reads side by side
  std::string_view entry = {};   // the module that the stream enters with a mean (Layout::recentre)
  bool tied = false;             // without "tie_word_embeddings": the head is the first writer's table
  bool apart = false;            // the head is never the table, whatever "tie_word_embeddings" says
  bool plus_one = false;         // gains are stored as 1+w
  bool plain = false;            // norms have no gains; else each has one
  std::vector<std::string_view> off_stream = {};
  std::vector<std::string_view> needed = {};  // of these, what each model has
  std::vector<std::string_view> beside = {};  // the same, without the stem
  std::vector<Refused> refused = {};
  std::vector<Allowed> allowed = {};
  std::vector<Absent> absent = {};  // tensors that the program has no place for and would pass over
};

std::span<const Family> text_families();
std::span<const Family> other_families();  // images, speech, several streams

// The description, as JSON, of a folder, also of one that was converted, whose readers may hold the norms' gains and biases.
// Throws where the family is none of the rows, with the reason where one is known;
// where the architecture is none of the row's; where config.json says something that the family refuses; where no stem
// fits, a layer lacks a tensor or has one that the program would pass over; and where a head is said to be the table, and
// its own tensor holds other numbers.
std::string describe(const Folder& folder);

}  // namespace isonorm::hub
