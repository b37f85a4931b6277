// Internal: weight files of the hub, and Flax weights with PyTorch's names and axes. Source: transformers 4.57,
// modeling_flax_pytorch_utils.py (load_flax_weights_in_pytorch_model and flax_shard_checkpoint).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::hub {

// The tensors of a weight file of any format.
struct Shard {
  std::vector<io::TensorEntry> entries;
  std::function<Tensor(const io::TensorEntry&)> read;
};

// PyTorch's name of a Flax tensor: "h.0.ln_1.scale", in an index "h/0/ln_1/scale", is "h.0.ln_1.weight".
std::string pytorch_name(std::string flax);

// The same tensors with PyTorch's names and axes. Scales and embeddings become weights. Kernels become weights with
// other axes: [in, out] -> [out, in], [n, in, out] -> [out, in, n], [h, w, in, out] -> [out, in, h, w]. Throws, naming
// the tensor, for tensors of batch norms and kernels of other ranks, and if two tensors get the same name.
Shard from_flax(const Shard& flax);

}  // namespace isonorm::hub
