// Internal: a folder as the Hugging Face hub has it: config.json, weights in one safetensors file or in shards with an index,
// and files of the tokenizer beside them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hub/config.h"
#include "io/lazy_state.h"
#include "io/safetensors.h"

namespace isonorm::hub {

struct Folder {
  std::string path;
  Config config;
  LazyState state;                             // F16 is read as f32, which holds it exactly
  std::map<std::string, std::string> foreign;  // dtypes of tensors that are held as bytes (io::TensorEntry)

  std::vector<std::string> names() const;
};

// Throws, naming the file, where config.json, the weights or the index are missing or not of their form, where a shard is
// missing, lies elsewhere, or holds other tensors than the index says, and where a tensor is in two of them.
Folder open_folder(const std::string& path);

// What became of the model.
struct Converted {
  std::vector<io::TensorEntry> entries;  // in order
  std::function<Tensor(const std::string& name)> read;
  std::string form, fold;          // of --to and --fold
  std::vector<std::string> norms;  // that have the form's kind now
  std::string rotation = {};       // of its stream, in words; empty where it has none
};

// Makes the folder `path`, which is not there yet: weights in files of at most `shard` bytes where a tensor has no
// more, index, config.json with "tie_word_embeddings" false and "isonorm", which says form, fold, norms, rotation; all other files of
// the source but weights. It appears whole: it is written beside under another name.
// Throws (io).
void write_folder(const std::string& path, const Folder& source, const Converted& converted, int64_t shard);

}  // namespace isonorm::hub
