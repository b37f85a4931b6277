// The files of rows: one function each, called by all.cpp in the order of docs/ops.md.
#pragma once

#include "tests/support/draw.h"
#include "tests/support/op_case.h"

namespace isonorm::test {

std::vector<OpCase> unary_cases();
std::vector<OpCase> binary_cases();
std::vector<OpCase> comparison_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> matmul_cases();
std::vector<OpCase> shape_cases();
std::vector<OpCase> arrange_cases();

// Operands for bad calls.
inline Tensor reals(const Dims& shape, DType dtype = DType::f32) { return empty(shape, {dtype}); }
inline Tensor integers(const Dims& shape) { return empty(shape, {DType::i64}); }

}  // namespace isonorm::test
