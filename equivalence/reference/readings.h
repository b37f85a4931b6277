// How a description may be wrong and still fit the shapes: what a reader or writer would then compute.
#pragma once

#include <functional>
#include <vector>

#include "equivalence/verify/stream_reader.h"
#include "io/lazy_state.h"

namespace isonorm::equivalence {

// What an output should be, and what its rounding is relative to: [rows, m], the sum of the absolute terms of each
// entry. A sum of `length` terms in any order is off by more than lambda sqrt(length) roundings of that with a
// probability of at most 2 exp(-lambda^2 / 2) (Higham & Mary, 2019); lambda is 2, as for the entries of a conversion.
struct Expected {
  Tensor value, size;
  int sums = 0, roundings = 0;  // that an entry goes through; the second of single numbers
  int64_t length = 1;

  // Of the program that computed in `dtype`, and of this one in f64. Sums of bf16 are held in f32.
  double bound(DType dtype) const;
};

// One way to read a tensor. `of`: what it makes of inputs [rows, n] (f64), or of ids [rows].
struct Reading {
  std::string how;  // "" as described, "with dim 0", "through norm 'ln_2'", "without its bias", "with the bias 'b'"
  std::function<Expected(const Tensor& inputs)> of;
};

// The ways to read the tensors of a file. File and layout must outlive it, and what it gives.
class Readings {
 public:
  Readings(const LazyState& file, const streams::Placement& layout);
  Readings(const LazyState&&, const streams::Placement&) = delete;
  Readings(const LazyState&, const streams::Placement&&) = delete;

  // The first as described. Then those that differ from it in one respect, have the same shapes, and another function or
  // another conversion: along another dim of the stream's width, through another norm, without the bias, or with the one
  // that the file has beside the weight and the description does not name.
  std::vector<Reading> of_reader(const TensorMap& state, const StreamReader& reader, const streams::Place& place) const;
  // `ids`: its inputs are ids, and nothing is added to its rows.
  std::vector<Reading> of_writer(const TensorMap& state, const streams::Place& place, bool ids) const;

 private:
  struct Bias {
    std::string how;
    Tensor bias;
  };
  std::vector<Bias> other_biases(const std::string& weight, const Tensor& bias, int64_t length) const;
  bool same_norm(const streams::NormPlace& a,
                 const streams::NormPlace& b) const;  // but for eps, of which rounding may show nothing
  Tensor gain_or_bias(const std::string& name, double otherwise) const;
  Tensor normalised_size(const streams::NormPlace& norm, const Tensor& x) const;
  Expected behind(const std::string& norm, const Tensor& rows) const;
  Expected read(const StreamReader& reader, const Tensor& absolute_weight, const Tensor& x) const;

  const LazyState& file_;
  const streams::Placement& layout_;
  TensorMap norms_;  // gains and biases
};

// The name of the writer that is the bias of this one; empty where there is none.
std::string bias_of_writer(const streams::Placement& layout, const streams::Place& writer);

}  // namespace isonorm::equivalence
