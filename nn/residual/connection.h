// The connections that the sub-layers of a Transformer hang on its residual stream by.
#pragma once

#include "nn/norm.h"
#include "nn/precision.h"

namespace isonorm::nn {

struct ConnectionOptions {
  double eps = 1e-5;
  bool affine = false;              // a learned gain and bias, where it normalizes
  bool bias = true;                 // false: of the two the gain alone
  NormKind kind = NormKind::layer;  // none: the bare stream goes on to the readers
  MixedPrecision precision = {};
  // The rows that the gain acts on are more than what readers read: it stays with them, whoever could take it up.
  bool keeps_gain = false;
  bool folded = false;  // gains that readers can take up are in them already: only kept ones are there

  ConnectionOptions keeping_gain() const {
    ConnectionOptions o = *this;
    o.keeps_gain = true;
    return o;
  }
};

// A residual connection (He et al., 1512.03385) with its norm: what a branch reads of the stream, and what the stream
// becomes.
//   connection.join(r, branch(connection.read(r)));
class Connection : public Norm {
 public:
  Connection(int64_t width, const ConnectionOptions& options);

  // The rows that the branch reads, or the head behind the last sub-layer: shape of the stream, dtype of the stream or
  // of the branches.
  virtual Tensor read(Residual& r) = 0;
  // The same in the dtype of the branches.
  Tensor rows(Residual& r);
  // Takes the branch's output into the stream. Throws where the shape is not the stream's, at the latest when the two
  // are added.
  virtual void join(Residual& r, const Tensor& branch) = 0;

  // Whether read() gives rows of the stream. Others are no rows of it (embeddings as they are; rows behind a gain that
  // stays).
  virtual bool reads_stream() const { return true; }
  bool keeps_gain() const { return keeps_gain_; }
  const MixedPrecision& precision() const { return precision_; }

  // How rows of the Pre-LN model become rows of the stream, in coordinates of its own; by default they are such.
  void enter_by(Rows map) { enters_ = std::move(map); }
  // What rows() gives goes through this map, where others have a part of the branch, or of the rows.
  void hand_by(Rows map) { hands_ = std::move(map); }

 protected:
  Tensor entered(const Tensor& rows) const { return enters_ ? enters_(rows) : rows; }

 private:
  MixedPrecision precision_;
  bool keeps_gain_;
  Rows enters_, hands_;
};

}  // namespace isonorm::nn
