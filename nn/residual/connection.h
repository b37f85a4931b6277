// The residual stream of a Transformer, and the connections that its sub-layers hang on it by.
#pragma once

#include "nn/module.h"
#include "nn/stream.h"

namespace isonorm::nn {

// The residual stream between two sub-layers: tensors [..., stored width] of one floating dtype,
// but for a branch of bf16 beside a stream of f32.
struct Residual {
  Tensor stream;
  Tensor pending;    // a branch that was computed but not yet added; undefined where none waits
  Tensor dual = {};  // a second stream beside the first (ResiDual, 2304.14802); undefined where there is none

  // Adds the branch that waits, if any, and gives the stream.
  const Tensor& settle();
  // Calls f(Tensor&) for each part that is defined: to take some of the rows or their mean, before or after the branch
  // is added.
  template <class F> void each(F&& f) {
    for (Tensor* part : {&stream, &pending, &dual})
      if (part->defined()) f(*part);
  }
};

// A residual connection (He et al., 1512.03385): what a branch reads of the stream, and what the stream becomes.
//   connection.join(r, branch(connection.read(r)));
class Connection : public Module {
 public:
  explicit Connection(const Stream& stream) : stream_(stream) {}

  // The rows that the branch reads, or the head behind the last sub-layer: shape of the stream, dtype of the stream or
  // of the branches.
  virtual Tensor read(Residual& r) = 0;
  // The same in the dtype of the branches (Stream::precision()).
  Tensor rows(Residual& r);
  // Takes the branch's output into the stream. Throws where the shape is not the stream's, at the latest when the two
  // are added.
  virtual void join(Residual& r, const Tensor& branch) = 0;
  // What a reader with weight [out, d] and bias [out] (or none, undefined) multiplies the rows of read() with, and what it
  // adds. Throws where the weight is not of the stream's width.
  virtual Tensor reader_weight(const Tensor& weight) const { return stream_.read(weight); }
  virtual Tensor reader_bias(const Tensor&, const Tensor& bias) const { return bias; }

  // The connection that maps the weights of what reads its rows; null where these are d entries in every form.
  virtual const Connection* maps_readers() const { return this; }

  const Stream& stream() const { return stream_; }

 private:
  Stream stream_;
};

}  // namespace isonorm::nn
