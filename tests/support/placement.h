// Tensors made of arrays in every layout an op may meet, inside storage whose other bytes are known.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/array.h"

namespace isonorm::test {

enum class Layout { contiguous, offset, transposed, sliced, stretched, stretched_outer };
const char* name_of(Layout layout);

// Of the array's tensor where floating ones are `real`.
DType dtype_for(const Array& a, DType real);

// The array as a tensor of its kind's dtype (`real` for floating ones), on the device of the tests unless told. Bytes of the storage around and between the
// elements are 0xff: NaN, -1 or 255, so that an op which reads them shows. Layout::stretched has stride 0 in one
// dimension and needs uniform_rows() first.
Tensor place(const Array& a, DType real, Layout layout);
Tensor place(const Array& a, DType real, Layout layout, Device device);

// The array with equal entries along its first dimension longer than 1 (stretched_outer: the last one left out): what a
// stride of 0 can hold.
Array uniform_rows(Array a, Layout layout = Layout::stretched);

// Real entries rounded to the dtype.
Array quantise(Array a, DType real);

// All bytes of the storages behind some tensors.
std::vector<std::vector<std::byte>> bytes_of(const Tensors& tensors);

// The elements' bytes of some tensors, in row-major order, NaNs by their bits.
std::vector<std::vector<std::byte>> elements_of(const Tensors& tensors);

}  // namespace isonorm::test
