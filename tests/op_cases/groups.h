// The files of rows: one function each, called by all.cpp in the order of docs/ops.md.
#pragma once

#include "tests/support/draw.h"
#include "tests/support/op_case.h"
#include "tests/support/test_device.h"

namespace isonorm::test {

std::vector<OpCase> unary_cases();
std::vector<OpCase> binary_cases();
std::vector<OpCase> comparison_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> matmul_cases();
std::vector<OpCase> einsum_cases();
std::vector<OpCase> shape_cases();
std::vector<OpCase> arrange_cases();
std::vector<OpCase> window_cases();
std::vector<OpCase> softmax_cases();
std::vector<OpCase> rotary_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> image_cases();
std::vector<OpCase> group_norm_cases();
std::vector<OpCase> loss_cases();
std::vector<OpCase> index_cases();
std::vector<OpCase> create_cases();
std::vector<OpCase> copy_cases();
std::vector<OpCase> random_cases();
std::vector<OpCase> mlp_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> recurrent_cases();
std::vector<OpCase> linear_cross_entropy_cases();

std::vector<FusedCase> add_norm_fused_cases();
std::vector<FusedCase> group_norm_fused_cases();
std::vector<FusedCase> mlp_fused_cases();
std::vector<FusedCase> attention_fused_cases();
std::vector<FusedCase> recurrent_fused_cases();
std::vector<FusedCase> linear_cross_entropy_fused_cases();

// Operands for bad calls.
inline Tensor reals(const Dims& shape, DType dtype = DType::f32) { return empty(shape, {dtype, test_device()}); }
inline Tensor integers(const Dims& shape) { return reals(shape, DType::i64); }
inline Tensor ids(const std::vector<int64_t>& values) {
  return on_test_device(values, {static_cast<int64_t>(values.size())});
}
// What functions that make tensors are asked for.
inline TensorOptions options_of(DType dtype) { return {dtype, test_device()}; }

}  // namespace isonorm::test
