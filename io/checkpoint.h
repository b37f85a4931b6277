// A checkpoint: everything that an interrupted run needs to continue, in one file that is replaced atomically. A
// checkpoint knows neither models nor optimizers: it holds named tensors and named texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/tensor_map.h"
#include "io/safetensors.h"

namespace isonorm {

// The names of weights begin with kCheckpointWeights. The metadata keys of values begin with kCheckpointValue.
inline constexpr std::string_view kCheckpointWeights = "weights.", kCheckpointValue = "value.";

struct Checkpoint {
  TensorMap weights;
  TensorMap optimizer;
  Metadata values;  // step, random state, positions of schedule and data, options; see integer_at()
};

// Replaces the file. It is a safetensors file with tensors "weights.<name>" and "optimizer.<name>", metadata
// "value.<name>", and a CRC-32 over everything. Throws if there are no weights, and what save_safetensors() throws;
// then the old file stays.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Reads and verifies the whole checkpoint. Throws if the file is damaged, is no checkpoint, or has another version.
Checkpoint load_checkpoint(const std::string& path);
Checkpoint load_checkpoint(const Bytes& file);

// Verifies a checkpoint, reading one tensor at a time. Throws if the file is damaged, is no checkpoint, or has another
// version.
void check_checkpoint(const SafetensorsFile& file);

// The path under which the previous checkpoint is kept: `<path>.previous`. If `path` is a symbolic link, this file is
// next to the file that the link points to.
std::string previous_checkpoint(const std::string& path);
// Throws (io) if there is a file at previous_checkpoint(path) that is no checkpoint, because such a file is not
// replaced.
void check_previous_checkpoint(const std::string& path);
// Keeps the current file as previous_checkpoint(path), by a hard link. Call it before save_checkpoint(), if the file is
// known to be undamaged. Does nothing on a file system without hard links. Throws what check_previous_checkpoint()
// throws.
void keep_previous_checkpoint(const std::string& path);

struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::string path;  // the file that was read
};
// The checkpoint at `path`; if that file is damaged, the previous checkpoint. If both are unusable, throws the error
// for `path`.
NewestCheckpoint load_newest_checkpoint(const std::string& path);
// The checkpoint to resume training from: load_newest_checkpoint(path). Empty if `path` is empty or there is no
// file. Throws if the file is missing but a previous checkpoint exists, because a new training would overwrite it.
std::optional<NewestCheckpoint> checkpoint_to_go_on_from(const std::string& path);

// The file of a training that saves its checkpoint again and again. The file before the last stays as
// previous_checkpoint().
class CheckpointFile {
 public:
  // newest: the checkpoint that the training continues from, if there is one.
  CheckpointFile(std::string path, const std::optional<NewestCheckpoint>& newest)
      : path_(std::move(path)), is_whole_(newest && newest->path == path_) {}

  bool is_whole() const { return is_whole_; }  // undamaged: this process has read or written it
  // Replaces the file. A damaged one is not kept. Throws as keep_previous_checkpoint() and save_checkpoint(); then the
  // file stays.
  void save(const Checkpoint& checkpoint);

 private:
  std::string path_;
  bool is_whole_;
};

// True if the metadata of a safetensors file mark it as a checkpoint.
bool is_checkpoint(const Metadata& metadata);
// The values in a checkpoint's metadata, without the prefix kCheckpointValue. Empty if the file is no checkpoint.
Metadata checkpoint_values(const SafetensorsFile& file);

// A number as text that reads back with the same bits: hexadecimal ("1.8p+1").
std::string exact(double number);
// The value under `name`. These throw if it is missing or is not such a number.
int64_t integer_at(const Metadata& values, std::string_view name);
double number_at(const Metadata& values, std::string_view name);
const std::string& text_at(const Metadata& values, std::string_view name);

}  // namespace isonorm
