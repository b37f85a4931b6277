// Everything that a run needs to go on as if it had not been interrupted, in one file that is replaced all at once. A
// checkpoint knows neither models nor optimizers: it is named tensors and named texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/tensor_map.h"
#include "io/safetensors.h"

namespace isonorm {

// What the names of a checkpoint's weights, and of its values in the metadata, begin with.
inline constexpr std::string_view kCheckpointWeights = "weights.", kCheckpointValue = "value.";

struct Checkpoint {
  TensorMap weights;
  TensorMap optimizer;
  Metadata values;  // step, generator, position of schedule and data, options: see the functions below for numbers
};

// Replaces the file. It is a safetensors file with tensors "weights.<name>" and "optimizer.<name>", metadata
// "value.<name>", and a CRC-32 over all of them. Throws where there are no weights, and as save_safetensors does;
// then the old file stays.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Throws where the file is not a whole, undamaged checkpoint of this version; nothing is returned unless everything has
// been verified.
Checkpoint load_checkpoint(const std::string& path);
Checkpoint load_checkpoint(const Bytes& file);

// Throws where the file is not a whole, undamaged checkpoint of this version; its tensors are read one at a time.
void check_checkpoint(const SafetensorsFile& file);

// Where the one before the last is kept: `<path>.previous`, beside the file itself where `path` is a symbolic link.
std::string previous_checkpoint(const std::string& path);
// Throws (io) if the file of that name is no checkpoint, because such a file is not replaced.
void check_previous_checkpoint(const std::string& path);
// The file stays under that name too when save_checkpoint replaces it: call this before, if the file is known to be whole. A
// hard link: on a file system without them only one checkpoint is kept. Throws as check_previous_checkpoint().
void keep_previous_checkpoint(const std::string& path);

struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::string path;  // where it was read from
};
// The checkpoint at `path`, or where that file is damaged the one before. Throws what is wrong with
// `path` where neither can be used.
NewestCheckpoint load_newest_checkpoint(const std::string& path);
// The checkpoint that a training goes on from: the file, or where that is damaged the one before it; none where `path` is
// empty or there is no file. Throws what load_newest_checkpoint() does, and where the file is gone but the one before it is
// there: a training that began anew would overwrite that.
std::optional<NewestCheckpoint> checkpoint_to_go_on_from(const std::string& path);

// Whether a safetensors file with these metadata calls itself a checkpoint.
bool is_checkpoint(const Metadata& metadata);

// Numbers as texts that give back the same bits: decimal for integers, hexadecimal for doubles ("1.8p+1").
std::string exact(double number);
// The number under `name`. Throw where it is missing or is not a number of that kind.
int64_t integer_at(const Metadata& values, std::string_view name);
double number_at(const Metadata& values, std::string_view name);
const std::string& text_at(const Metadata& values, std::string_view name);

}  // namespace isonorm
