// Internal: a model folder of the Hugging Face hub: config.json, weights in one file or in shards with an index
// (safetensors, else pytorch_model.bin (io/torch_file.h) or flax_model.msgpack (flax.h)), and tokenizer files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "exchange/hub/config.h"
#include "io/half.h"
#include "streams/plan.h"

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

// Throws, naming the file, if config.json, the weights or the index are missing or malformed; if a shard is missing, is
// outside of the folder, or has other tensors than the index says; if two shards have the same tensor; or if the folder
// has an adapter or names another file of weights.
Folder open_folder(const std::string& path);

// The files that open_folder() may read: config.json, weights and their index, the shards that an index lists.
std::vector<std::string> files_in(const std::string& folder);

// The contents of a folder that is written.
struct FolderContent : io::FileContent {
  json config;         // its dtype is replaced by the dtype of the entries
  Metadata metadata;   // of the weight files
  std::string beside;  // a folder whose files are copied, except weights and config.json; empty: none
  std::map<std::string, std::string> texts = {};  // further files, by name
};

// Makes the new folder `path` and its missing parents. It gets the weights, config.json, content.texts, and copies of
// files in content.beside. Weights are split into files of at most `shard` bytes, with an index; a larger tensor has a
// file to itself. The folder is written under a temporary name and then renamed, so it appears whole. Throws (io).
void write_folder(const std::string& path, const FolderContent& content, int64_t shard);
// Throws if something is at `path`; (io) if the folder cannot be made or a file of `beside` cannot be read.
void check_new_folder(const std::string& path, const std::string& beside = {});

// The config.json of the LLaMA that equals an OLMo in rms_norm form: LlamaForCausalLM, or LlamaModel without a head.
// The tensors have the same names; every norm gets a gain of ones. Throws, with the reason, if config.json describes
// another model.
// Source: modeling_olmo.py and modeling_llama.py of transformers, which differ in the norm and in clip_qkv.
json llama_config(const Config& config);

// A model after its conversion.
struct Converted : io::FileContent {
  json config;                       // names its present class
  std::string form, fold;            // the values of --to and --fold
  std::vector<streams::Plan> plans;  // of its streams, before the conversion
  std::vector<std::string> biases;   // biases of readers that had none before
  // The stream's rotation in words; empty: none. With a rotation, config has the entry "isonorm" of a converted folder,
  // whose form and rotation alone change; fold, layouts and biases are ignored.
  std::string rotation = {};
};

// The entry "isonorm" in the config.json of a folder that write_folder() made; empty for other folders. Throws if the
// entry is malformed or has unknown parts; if form and rotation contradict each other: uncentred_rms_norm must have a
// rotation, and other forms except crms_isometric must not; or if a rotated stream is recentred.
struct ConversionRecord {
  std::string form;
  int64_t width = 0;  // of the first stream
  // For each norm of the streams: eps; width, if it is not `width`; gain and bias, if it has them.
  std::map<std::string, json> norms;
  std::vector<std::string> biases;  // biases of readers that had none before
  std::string rotation;             // empty: none
  // Lists that only some folders need. "identity": norms between a table and the stream, which the program leaves out;
  // "recentred": modules at whose input the program subtracts the mean of the rows; "scales": layer scales that were
  // folded.
  std::map<std::string, std::vector<std::string>> lists;

  const std::vector<std::string>& list(const std::string& entry) const;
  bool names(const std::string& entry, const std::string& name) const;
};
ConversionRecord conversion_record(const Config& config);
inline constexpr int kVersion = 1;  // version of the entry, which isonorm_torch.py checks, too

// The differences of two models' config.json, "n_head 12 and 16, ...". Ignores entries about the conversion, the file's
// dtype and training. Empty if there is no difference.
std::string different(const Config& a, const Config& b);

// Writes the folder of a converted source. In config.json "tie_word_embeddings" is false, "layerscale_value", if it is
// there, is 1, and "isonorm" describes the changes to the class; isonorm_torch.py, which reads it, is added. "width" in
// that entry is d of the first stream; a norm of a stream of another width has its own.
void write_folder(const std::string& path, const Folder& source, const Converted& converted, int64_t shard);

}  // namespace isonorm::hub
