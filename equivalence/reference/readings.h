// Wrong descriptions that still fit the shapes, with the outputs that readers and writers would then give.
#pragma once

#include <functional>
#include <vector>

#include "equivalence/convert/rows.h"
#include "io/lazy_state.h"

namespace isonorm::equivalence {

// An expected output, and the size that its rounding is relative to: [rows, m], the sum of the absolute terms of each
// entry. A sum of `length` terms in any order is off by more than lambda sqrt(length) roundings of this size with a
// probability of at most 2 exp(-lambda^2 / 2) (Higham & Mary, 2019). lambda is 2, as for the entries of a conversion.
struct ExpectedOutput {
  Tensor value, size;
  int sums = 0, roundings = 0;  // numbers of sums and of single roundings in the computation of an entry
  int64_t length = 1;

  // The bound for a program that computed in `dtype` and for this one, which computes in f64. Sums of bf16 are held in
  // f32.
  double bound(DType dtype) const;
};

// One way to interpret a tensor. of(inputs) returns the expected output for rows [rows, n] (f64) or ids [rows].
struct Reading {
  std::string how;  // "" as described, "with dim 0", "through norm 'ln_2'", "without its bias", "with the bias 'b'"
  std::function<ExpectedOutput(const Tensor& inputs)> of;
};

// The ways to read the tensors of a file. File and plan must outlive this object and the readings.
class Readings {
 public:
  Readings(const LazyState& file, const streams::Plan& plan);
  Readings(const LazyState&&, const streams::Plan&) = delete;
  Readings(const LazyState&, const streams::Plan&&) = delete;

  // The first reading is the described one. The others differ from it in one respect, fit the same shapes, and give
  // another function or another conversion: along another dim of the stream's width, through another norm, without the
  // bias, or with a bias that the file has next to the weight and the description does not name.
  std::vector<Reading> of_reader(const TensorMap& state, const streams::Plan::Reader& reader) const;
  // ids: the inputs are ids, and no bias is added to the rows.
  std::vector<Reading> of_writer(const TensorMap& state, const streams::Plan::Writer& writer, bool ids) const;

 private:
  struct Bias {
    std::string how;
    Tensor bias;
  };
  std::vector<Bias> other_biases(const std::string& weight, const Tensor& bias, int64_t length) const;
  bool same_norm(int a, int b) const;  // ignores eps, which rounding may hide
  Tensor gain_or_bias(const std::string& name, double otherwise) const;
  Tensor normalised_size(const streams::Plan::Norm& norm, const Tensor& x) const;
  ExpectedOutput behind(int norm, const Tensor& rows) const;
  ExpectedOutput read(int norm, int64_t parts, const ReaderWeights& weights, const Tensor& x) const;

  const LazyState& file_;
  const streams::Plan& plan_;
  TensorMap norms_;  // gains and biases
};

// The name of the bias of this writer, if it is a writer, too; empty if there is none.
std::string bias_of_writer(const streams::Plan& plan, const streams::Plan::Writer& writer);

}  // namespace isonorm::equivalence
