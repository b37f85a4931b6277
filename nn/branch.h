// How a branch of a block ends: the linear map whose output is added to the stream, and what may act on its output before
// it is.
#pragma once

#include <functional>

#include "nn/linear.h"

namespace isonorm::nn {

// Where the map of a stream that centres its writers (streams/parametrize.h) stands among dropout and layer scale. It must come
// last: the output of P W is zero-mean, a masked or scaled one is not, and P mask P W is not P mask W either. The two
// others exist to show that they are wrong (tests/streams/switches_test.cpp).
enum class Recentring { last, first, first_and_last };

struct BranchOptions {
  double dropout = 0;           // share of the branch's d entries that training sets to 0 (Srivastava et al., 2014)
  double stochastic_depth = 0;  // probability that training leaves the branch out for a sample (1603.09382)
  double layer_scale = 0;       // initial value of a learned factor for each of the d entries (2103.17239); 0: none
  Recentring recentring = Recentring::last;  // the others are wrong, for the laboratory
};

// x [batch, ..., in] -> what is added to the stream, [batch, ..., out],
//   keep * mask * scale * (x W^T + b) / ((1 - dropout) (1 - stochastic_depth)),
// with a mask per entry and one keep per sample of the batch, both drawn from the default generator: runs in lockstep
// draw the same ones where each step sets the same state. Throws where a probability is not in [0, 1).
class BranchOutput : public Linear {
 public:
  BranchOutput(int64_t in, int64_t out, bool bias, BranchOptions options);
  // As forward() for rows of a dtype that are not at hand: product(W, b) is x W^T + b.
  using Product = std::function<Tensor(const Tensor& weight, const Tensor& bias)>;
  Tensor ending(DType rows, const Product& product) const;

  const BranchOptions& options() const { return options_; }
  BranchOutput rebuild() const { return BranchOutput(in(), out(), bias.defined(), options_); }

  Parameter& scale;  // [out]; undefined without layer scale

  // How what is added becomes rows of a stream in coordinates of its own: a map along dimension `dim`, of `out` entries. It is
  // for weight and bias, or for the masked output.
  struct Entry {
    virtual ~Entry() = default;
    virtual Tensor operator()(const Tensor& x, int dim) const = 0;
    virtual bool centres() const = 0;  // it is of the kind that options().recentring is about
  };
  void enter_by(std::shared_ptr<const Entry> entry);
  const Entry* entry() const { return entry_.get(); }
  // Its input is a part of the entries that make up the output: sum(part) is x W^T of all of them, to which the bias is added once.
  void sum_by(std::function<Tensor(const Tensor& part)> sum) { sum_ = std::move(sum); }
  // Whether weight or bias has a parametrisation that is not this class's.
  bool parametrized_elsewhere() const;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Tensor output(DType rows, const Product& product) const;  // without stochastic depth

  BranchOptions options_;
  Recentring order_ = Recentring::last;
  std::shared_ptr<const Entry> entry_;
  std::function<Tensor(const Tensor&)> sum_;
};

}  // namespace isonorm::nn
