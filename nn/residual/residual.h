// The residual stream between two sub-layers. A branch that is added waits, and the next norm adds it in the pass in which
// it reads the stream (autograd/fused/add_norm.h):
//
//   nn::Residual x = embedding(ids);
//   x += attention(norm1(x));
//   x += mlp(norm2(x));
//   return head(norm(x));
#pragma once

#include "core/tensor.h"

namespace isonorm::nn {

// Tensors [..., width] of one floating dtype, but for a branch of bf16 beside a stream of f32.
struct Residual {
  Tensor stream;
  Tensor pending;    // a branch that was computed but not yet added; undefined where none waits
  Tensor dual = {};  // a second stream beside the first (ResiDual, 2304.14802); undefined where there is none

  Residual(const Tensor& stream, const Tensor& pending = {}) : stream(stream), pending(pending) {}

  // The branch waits; one that waited is added. A branch that broadcasts to the stream is expanded. Throws if it does
  // not, is undefined, or has another dtype.
  Residual& operator+=(const Tensor& branch);
  // Adds the branch that waits, if any, and gives the stream.
  const Tensor& settle();
  // Calls f(Tensor&) for each part that is defined: to take some of the rows or their mean, before or after the branch
  // is added.
  template <class F> void each(F&& f) {
    for (Tensor* part : {&stream, &pending, &dual})
      if (part->defined()) f(*part);
  }
};

}  // namespace isonorm::nn
