// Named tensors in files of other programs.
#pragma once

#include <string>

#include "core/tensor_map.h"

namespace isonorm {

// The tensors of a safetensors file, of a state dict that torch.save wrote (since PyTorch 1.6), or of an .npz archive,
// on the CPU. The format is recognised by the content of the file, not by its name.
//
// A dtype that Tensor lacks becomes the smallest tensor dtype that holds every value: F16 and F8 become f32; BOOL, I8,
// I16, U16, I32 and U32 become i64. No value changes. Throws what load_safetensors() and load_npz() throw. Also throws
// on U64 and complex numbers, and if a pickle holds anything but a dict of tensors.
//
// In PyTorch: torch.save(model.state_dict(), "net.pt"). nn::from_torch() converts names and layouts to ours. The map
// is_torch() if the file is a pickle or its metadata say "format": "pt" (save_pretrained() writes that,
// safetensors.torch.save_file() does not).
TensorMap load_state(const std::string& path);

}  // namespace isonorm
