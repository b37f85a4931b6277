// The residual stream between two sub-layers. An added branch stays pending, and the next norm adds it in the same pass
// over the rows (autograd/ops/norm.h):
//
//   nn::Residual x = embedding(ids);
//   x += attention(norm1(x));
//   x += mlp(norm2(x));
//   return head(norm(x));
#pragma once

#include "core/tensor.h"

namespace isonorm::nn {

// Tensors [..., width] of the same floating dtype, except that a bf16 branch may be added to an f32 sum.
struct Residual {
  Tensor sum;        // the sum of the embeddings and the branches that were added
  Tensor pending;    // a branch that is computed but not yet added; undefined if there is none
  Tensor dual = {};  // the second residual stream of ResiDual (2304.14802); undefined if there is none

  Residual(const Tensor& sum, const Tensor& pending = {}) : sum(sum), pending(pending) {}

  // Makes `branch` the pending one; a branch that was pending is added first. A branch that broadcasts to the sum is
  // expanded. Throws if it does not broadcast, is undefined, or has another dtype.
  Residual& operator+=(const Tensor& branch);
  // Adds the pending branch, if any, and returns the sum.
  const Tensor& settle();
  // Calls f(Tensor&) for each part that is defined: to take some of the rows or their mean, before or after the branch
  // is added.
  template <class F> void each(F&& f) {
    for (Tensor* part : {&sum, &pending, &dual})
      if (part->defined()) f(*part);
  }
};

}  // namespace isonorm::nn
