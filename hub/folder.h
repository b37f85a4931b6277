// Internal: a folder as the Hugging Face hub has it: config.json, weights in one file or in shards with an index, as
// safetensors or else as pytorch_model.bin (io/torch_file.h) or flax_model.msgpack (flax.h), and files of the tokenizer beside
// them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "hub/config.h"
#include "io/half.h"
#include "streams/placement.h"

namespace isonorm::hub {

struct Folder {
  std::string path;
  Config config;
  LazyState state;
  io::ForeignTypes foreign;

  std::vector<std::string> names() const;
};

// Reads config.json of the folder. Throws, naming folder and file, if it is not a JSON object or is larger than 1 MiB.
Config read_config(const std::string& folder);

// Throws, naming the file, where config.json, the weights or the index are missing or not of their form, where a shard is
// missing, lies elsewhere, or holds other tensors than the index says, and where a tensor is in two of them.
Folder open_folder(const std::string& path);

// The files that open_folder() may read: config.json, weights and their index, the shards that an index lists.
std::vector<std::string> files_in(const std::string& folder);

// What a folder is to hold.
struct FolderContent : io::FileContent {
  json config;         // but for the dtype, which is that of the entries
  Metadata metadata;   // of the weights' files
  std::string beside;  // a folder: all of its files but weights and config.json are copied; empty: none
  std::map<std::string, std::string> texts = {};  // files, by name
};

// Makes the new folder `path` and its missing parents. It gets the weights, config.json, content.texts, and copies of
// files in content.beside. Weights are split into files of at most `shard` bytes, with an index; a larger tensor has a
// file to itself. The folder is written under a temporary name and then renamed, so it appears whole. Throws (io).
void write_folder(const std::string& path, const FolderContent& content, int64_t shard);
// Throws if something is at `path`; (io) if the folder cannot be made or a file of `beside` cannot be read.
void check_new_folder(const std::string& path, const std::string& beside = {});

// What became of the model.
struct Converted : io::FileContent {
  json config;                              // of the class that it is now
  std::string form, fold;                   // of --to and --fold
  std::vector<streams::Placement> layouts;  // of its streams, as they were
  std::vector<std::string> biases;          // of readers that had none
  // Of its stream, in words; empty where it has none. Where it has one, config has the entry "isonorm" of a converted folder,
  // which stays but for form and rotation: fold, layouts and biases are not asked for.
  std::string rotation = {};
};

// What config.json says of a folder that write_folder() made; of another nothing. Throws where that is not of the form, or
// says more; where form and rotation contradict each other: a rotated rms_norm is uncentred_rms_norm, and nothing else is; or
// where a rotated stream is recentred.
struct SaidOfConversion {
  std::string form;
  int64_t width = 0;  // of the first stream
  // Of each norm of the streams: eps, width where it is another, gain and bias where it has them.
  std::map<std::string, json> norms;
  std::vector<std::string> biases;  // of readers that had none
  std::string rotation;             // empty where there is none
  // By entry, which a folder has that needs it. "identity": norms behind tables, which the program leaves out; "recentred":
  // modules that a stream enters with a mean, which the program takes off there; "scales": layer scales that were folded.
  std::map<std::string, std::vector<std::string>> lists;

  const std::vector<std::string>& list(const std::string& entry) const;
  bool names(const std::string& entry, const std::string& name) const;
};
SaidOfConversion converted(const Config& config);
inline constexpr int kVersion = 1;  // of that entry, which isonorm_torch.py reads, too

// What two programs differ in by their config.json, "n_head 12 and 16, ...": all entries but those of the conversion, of the
// file's dtype, and of training. Empty where in nothing.
std::string different(const Config& a, const Config& b);

// The same of a source that was converted: config.json with "tie_word_embeddings" false, "layerscale_value" 1 where it is there,
// and "isonorm", which says what is new to the class; isonorm_torch.py, which reads that. "width" there is d of the first stream;
// a norm of a stream of another width says its own.
void write_folder(const std::string& path, const Folder& source, const Converted& converted, int64_t shard);

}  // namespace isonorm::hub
