// Internal: tensors of Python and of isonorm share memory without a copy (DLPack and the buffer protocol).
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "core/tensor.h"

namespace isonorm::python {

// A tensor over the memory of `array` (NumPy's, torch's, or any object with __dlpack__ or a buffer), which lives as
// long as the tensor. f32, f64, bf16, i64, u8; bool becomes u8. Copies if `copy` is true or if the memory cannot be
// shared (read-only, negative strides, not aligned). Throws ValueError if `copy` is false and a copy is needed. Also
// throws on torch tensors that require a gradient, other dtypes, more than eight dimensions and memory on another
// device.
Tensor from_python(nanobind::handle array, std::optional<bool> copy);

// Adds the class Tensor and the function tensor().
void bind_tensor(nanobind::module_& m);

}  // namespace isonorm::python
