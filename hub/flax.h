// Internal: files of weights as the hub has them, and those of Flax by PyTorch's names and axes.
// Source: transformers 4.57, modeling_flax_pytorch_utils.py (load_flax_weights_in_pytorch_model, flax_shard_checkpoint).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace isonorm::hub {

// A file of weights of any format.
struct Shard {
  std::vector<io::TensorEntry> entries;
  std::function<Tensor(const io::TensorEntry&)> read;
};

// "h.0.ln_1.scale", or as an index has it "h/0/ln_1/scale": "h.0.ln_1.weight".
std::string pytorch_name(std::string flax);

// The same tensors as PyTorch has them. Scale and embedding are weights; so are kernels, [in, out] as [out, in], [n, in, out] as
// [out, in, n], [h, w, in, out] as [out, in, h, w]. Throws, naming the tensor, where that is not all: of batch norms, kernels of
// other ranks, and where two get one name.
Shard from_flax(const Shard& flax);

}  // namespace isonorm::hub
