// Makes tensors from arrays, in every layout that an op may meet. All other bytes of their storage are known.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/array.h"

namespace isonorm::test {

enum class Layout { contiguous, offset, transposed, sliced, stretched, stretched_outer };
const char* name_of(Layout layout);

// The dtype of the array's tensor, with `real` for floating-point arrays.
DType dtype_for(const Array& a, DType real);

// The array as a tensor (dtype_for()), on the tests' device by default. The bytes of the storage around and between the
// elements are 0xff (NaN, -1 or 255), so that an op that reads them is detected. Layout::stretched has stride 0 in one
// dimension and needs uniform_rows() first.
Tensor place(const Array& a, DType real, Layout layout);
Tensor place(const Array& a, DType real, Layout layout, Device device);

// Makes the entries equal along the first dimension longer than 1 (stretched_outer: not the last dimension), as a
// stride of 0 requires.
Array uniform_rows(Array a, Layout layout = Layout::stretched);

// Rounds floating-point entries to the dtype.
Array quantise(Array a, DType real);

// All bytes of the tensors' storages.
std::vector<std::vector<std::byte>> bytes_of(const Tensors& tensors);

// The bytes of the tensors' elements, in row-major order; NaNs with their bits.
std::vector<std::vector<std::byte>> elements_of(const Tensors& tensors);

}  // namespace isonorm::test
