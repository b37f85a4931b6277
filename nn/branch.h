// How a branch of a block ends: the linear map that writes to the stream, and what may act on its output before it
// does.
#pragma once

#include <functional>

#include "nn/on_stream.h"

namespace isonorm::nn {

// Where the map into the stream's coordinates (recentring, in the centred forms) stands among dropout and layer scale.
// It must come last: the output of P W is zero-mean, a masked or scaled one is not, and P mask P W is not P mask W
// either. The two others exist to show that they are wrong (tests/nn/switches_test.cpp). Where the form does not
// centre, or nothing acts on the output, all three are one.
enum class Recentring { last, first, first_and_last };

struct BranchOptions {
  double dropout = 0;           // share of the branch's d entries that training sets to 0 (Srivastava et al., 2014)
  double stochastic_depth = 0;  // probability that training leaves the branch out for a sample (1603.09382)
  double layer_scale = 0;       // initial value of a learned factor for each of the d entries (2103.17239); 0: none
  Recentring recentring = Recentring::last;  // the others are wrong, for the laboratory
};

// The writer that ends a branch: x [batch, ..., in] -> what is added to the stream, [batch, ..., stored width],
//   keep * map(mask * scale * (x W^T + b)) / ((1 - dropout) (1 - stochastic_depth)),
// with a mask per entry and one keep per sample of the batch, both drawn from the default generator: runs in lockstep
// draw the same ones where each step sets the same state, whatever the form of the stream. Dropout or layer scale on a
// stream that centres needs raw storage, since a mask acts on the d entries that mapped weights no longer hold. Throws
// there, and where a probability is not in [0, 1).
class BranchOutput : public Linear {
 public:
  BranchOutput(int64_t in, const Stream& stream, bool bias, BranchOptions options);
  // As forward() for rows that are not at hand: product(W, b) is x W^T + b.
  using Product = std::function<Tensor(const Tensor& weight, const Tensor& bias)>;
  Tensor ending(const Product& product) const;

  const BranchOptions& options() const { return options_; }

  Parameter scale;  // [d]; undefined without layer scale

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Recentring recentring() const;
  Tensor output(const Product& product) const;  // without stochastic depth

  BranchOptions options_;
  Stream stream_;
};

}  // namespace isonorm::nn
