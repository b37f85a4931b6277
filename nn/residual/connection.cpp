#include "nn/residual/connection.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

const Tensor& Residual::settle() {
  if (pending.defined()) stream = stream + pending, pending = {};
  return stream;
}

Mapped Connection::folded(const Tensor& weight, const Tensor& bias) const { return {stream_.read(weight), bias}; }

}  // namespace isonorm::nn
