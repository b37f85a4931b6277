// The files of rows: one function per file. all.cpp calls them in the order of docs/ops.md.
#pragma once

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
std::vector<OpCase> statistics_cases();
std::vector<OpCase> distance_cases();
std::vector<OpCase> softmax_cases();
std::vector<OpCase> rotary_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> image_cases();
std::vector<OpCase> convolution_cases();
std::vector<OpCase> resize_cases();
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

FusedCase add_norm_fused_case();

// A row without samples. Its signature is the name and `parameters`.
inline OpCase row_of(std::string group, std::string name, const std::string& parameters, std::string formula,
                     Tolerance tolerance = tolerance::exact) {
  return {.name = name,
          .group = std::move(group),
          .signature = name + parameters,
          .formula = std::move(formula),
          .tolerance = tolerance};
}

inline std::vector<Dims> shapes_and_large(int min_rank = 0, int max_rank = 5) {
  std::vector<Dims> all = shapes(min_rank, max_rank);
  all.push_back(kLarge);
  return all;
}
// The shape with another size at d, with a new dimension before d, and without d.
inline Dims resized(Dims shape, int d, int64_t size) {
  shape[d] = size;
  return shape;
}
inline Dims inserted(const Dims& shape, int d, int64_t size) {
  Dims to;
  for (int i = 0; i <= shape.rank; ++i) {
    if (i == d) to.push_back(size);
    if (i < shape.rank) to.push_back(shape[i]);
  }
  return to;
}
inline Dims removed(const Dims& shape, int d) {
  Dims to;
  for (int i = 0; i < shape.rank; ++i)
    if (i != d) to.push_back(shape[i]);
  return to;
}
inline Array reshaped(Array x, const Dims& shape) {
  x.shape = shape;
  return x;
}
// The array with entry x[source(i)] at i.
template <class F> Array moved(const Array& x, const Dims& to, F source) {
  return tabulate(
      to, [&](const Dims& i) { return x.at(source(i)); }, x.kind);
}
// x w^T + b for rows x; b may be null.
inline Array affine(const Array& x, const Array& w, const Array* b) {
  const int last = x.shape.rank - 1;
  return tabulate(resized(x.shape, last, w.shape[0]), [&](Dims i) {
    const int64_t o = i[last];
    long double sum = b ? b->v[o] : 0;
    for (i[last] = 0; i[last] < w.shape[1]; ++i[last]) sum += static_cast<long double>(x.at(i)) * w.at({o, i[last]});
    return static_cast<double>(sum);
  });
}
// "name a b c"
template <class T> std::string label_of(std::string name, const std::vector<T>& numbers) {
  for (const T& n : numbers) name += text(' ', n);
  return name;
}

// Adds a sample with one normal input; every sixth time it first adds one with i64 input.
template <class Run, class Reference>
Sample& add_moved(OpCase& op, const std::string& label, const Dims& shape, Run run, Reference reference) {
  if (op.samples.size() % 6 == 0) op.add(label + " i64", {op.draw.index(shape, 1000)}, run, reference);
  Sample& s = op.add(label, {op.draw.normal(shape)}, run, reference);
  s.large = shape == kLarge;
  return s;
}

// Operands for calls that must be refused.
inline Tensor reals(const Dims& shape, DType dtype = DType::f32) { return empty(shape, {dtype, test_device()}); }
inline Tensor integers(const Dims& shape) { return reals(shape, DType::i64); }
inline Tensor ids(const std::vector<int64_t>& values) {
  return on_test_device(values, {static_cast<int64_t>(values.size())});
}
// Options for functions that make tensors.
inline TensorOptions options_of(DType dtype) { return {dtype, test_device()}; }

}  // namespace isonorm::test
