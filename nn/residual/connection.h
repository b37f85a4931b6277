// Residual connections: how a sub-layer reads the residual stream and how its output is added back.
#pragma once

#include "nn/norm.h"
#include "nn/precision.h"

namespace isonorm::nn {

struct ConnectionOptions {
  double eps = 1e-5;
  bool affine = false;              // if there is a norm: a learned gain and bias
  bool bias = true;                 // false: only the gain
  NormKind kind = NormKind::layer;  // none: readers get the stream itself
  MixedPrecision precision = {};
  // The norm's rows go to more than linear readers (they become the stream, or are added to it), so the gain stays in
  // the norm and is not moved into the readers.
  bool keeps_gain = false;
  bool folded = false;  // the gains that readers can absorb are in them already; only kept gains exist

  ConnectionOptions keeping_gain() const {
    ConnectionOptions o = *this;
    o.keeps_gain = true;
    return o;
  }
};

// A residual connection (He et al., 1512.03385) with its norm: it gives the rows that a branch reads, and updates the
// stream by the branch's output.
//   connection.join(r, branch(connection.read(r)));
class Connection : public Norm {
 public:
  Connection(int64_t width, const ConnectionOptions& options);

  // The rows that the branch reads, or the head after the last sub-layer. Shape of the stream; dtype of the stream or
  // of the branches.
  virtual Tensor read(Residual& r) = 0;
  // The same in the dtype of the branches.
  Tensor rows(Residual& r);
  // Adds the branch's output to the stream. Throws if its shape is not the stream's, at the latest when the two are
  // added.
  virtual void join(Residual& r, const Tensor& branch) = 0;

  // True if read() gives rows of the stream. Examples of others: bare embeddings, and rows after a gain that stays in
  // the norm.
  virtual bool reads_stream() const { return true; }
  bool keeps_gain() const { return keeps_gain_; }
  const MixedPrecision& precision() const { return precision_; }

  // Sets the map from rows of the Pre-LN model to rows of the stream in its coordinates. By default there is none.
  void enter_by(Rows map) { enters_ = std::move(map); }
  // For tensor parallelism, in which other ranks have a part of the branch or of the rows: passes the result of rows()
  // through this map.
  void hand_by(Rows map) { hands_ = std::move(map); }

 protected:
  Tensor entered(const Tensor& rows) const { return enters_ ? enters_(rows) : rows; }

 private:
  MixedPrecision precision_;
  bool keeps_gain_;
  Rows enters_, hands_;
};

}  // namespace isonorm::nn
