// Internal: tensors of Python and of isonorm, one as the other without a copy (DLPack and the buffer protocol).
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "core/tensor.h"

namespace isonorm::python {

// A tensor over the memory of `array` (NumPy's, torch's, whatever has __dlpack__ or a buffer), which lives as long as the tensor
// does. f32, f64, bf16, i64, u8; bool becomes u8. Where the memory cannot be shared (read-only, negative strides, not aligned)
// or `copy` is true, a copy. Throws ValueError where `copy` is false and one is needed, and on torch tensors that take a gradient,
// another dtype, more than eight dimensions and memory of another device.
Tensor from_python(nanobind::handle array, std::optional<bool> copy);

// Adds the class Tensor and the function tensor().
void bind_tensor(nanobind::module_& m);

}  // namespace isonorm::python
