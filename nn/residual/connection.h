// Residual connections: how a sub-layer reads the residual stream and how its output is added back.
#pragma once

#include <functional>

#include "nn/norm.h"
#include "nn/precision.h"

namespace isonorm::nn {

struct ConnectionOptions {
  double eps = 1e-5;
  bool affine = false;              // if there is a norm: a learned gain and bias
  bool bias = true;                 // false: only the gain
  NormKind kind = NormKind::layer;  // none: branches read the residual stream itself
  MixedPrecision precision = {};
  // True if the linear layers that read the norm's result can absorb its gain and bias, because nothing else reads it.
  // False: the result becomes the residual stream or is added to it.
  bool foldable = true;
  bool folded = false;  // gains and biases that can be folded into linear layers are: the norm has none
  double factor = 1;    // multiplies the norm's result (LayerNorm Scaling)

  ConnectionOptions not_foldable() const {
    ConnectionOptions o = *this;
    o.foldable = false;
    return o;
  }
};

// A residual connection (He et al., 1512.03385) with its norm: it gives the rows that a branch reads, and updates the
// residual stream by the branch's output.
//   connection.join(r, branch(connection.read(r)));
class Connection : public Norm {
 public:
  Connection(int64_t width, const ConnectionOptions& o)
      : Norm(width, {.kind = o.kind, .eps = o.eps},
             {.eps = o.eps, .affine = o.affine && !(o.foldable && o.folded), .bias = o.bias, .factor = o.factor}),
        precision_(o.precision),
        foldable_(o.foldable) {}

  // The rows that the branch reads, or the head after the last sub-layer. Shape of the residual stream; its dtype or
  // the branches'.
  virtual Tensor read(Residual& r) = 0;
  // The same in the dtype of the branches.
  Tensor rows(Residual& r) {
    const DType dtype = precision_.branch_dtype(r.sum.dtype());
    const Tensor x = read(r).to(dtype);
    return gather_ ? gather_(x) : x;
  }
  // Adds the branch's output to the residual stream. Throws if their shapes differ, at the latest when the two are
  // added.
  virtual void join(Residual& r, const Tensor& branch) = 0;

  // True if read() gives rows of the residual stream, or a norm of such rows whose gain a linear layer can absorb.
  // False for the embeddings that the first branch of Post-LN reads, and for rows after a gain that is not foldable.
  virtual bool reads_residual() const { return true; }
  bool foldable() const { return foldable_; }
  const MixedPrecision& precision() const { return precision_; }

  using Rows = std::function<Tensor(const Tensor& rows)>;
  // Sets the projection shortcut (He et al., 1512.03385, equation 2). It maps rows that are added to the sum though no
  // linear layer computed them, such as the rows of a norm after its gain. Without this call there is no shortcut.
  void project_by(Rows projection) { projection_ = std::move(projection); }
  // Tensor parallelism (f of Megatron-LM, 1909.08053): passes the result of rows() through this map. The map is needed
  // because each rank has only a part of the branch or of the rows.
  void gather_by(Rows gather) { gather_ = std::move(gather); }

 protected:
  Tensor projected(const Tensor& rows) const { return projection_ ? projection_(rows) : rows; }

 private:
  MixedPrecision precision_;
  bool foldable_;
  Rows projection_, gather_;
};

}  // namespace isonorm::nn
