// Named tensors in files of other programs.
#pragma once

#include <string>

#include "core/tensor_map.h"

namespace isonorm {

// The tensors of a safetensors file, of a state dict that torch.save wrote (since PyTorch 1.6), or of an .npz archive,
// on the CPU. The content of the file says which it is, its name does not.
//
// A dtype that no tensor has becomes the smallest tensor dtype that holds every value: F16 and F8 become f32; BOOL, I8,
// I16, U16, I32 and U32 become i64. No value changes. Throws as load_safetensors() and load_npz(), if a pickle holds
// other things than a dict of tensors, and on U64 and complex numbers.
//
// In PyTorch: torch.save(model.state_dict(), "net.pt"). nn::from_torch() gives layers their names and layouts here. The
// map is_torch() if the file is a pickle or its metadata say "format": "pt" (save_pretrained() writes that, and
// safetensors.torch.save_file() does not).
TensorMap load_state(const std::string& path);

}  // namespace isonorm
