#include "nn/residual/sandwich.h"

namespace isonorm::nn {

Sandwich::Sandwich(const Stream& stream, StreamNormOptions o)
    : PreNorm(stream, o), after_(add("after", PreNorm(stream, o.keeping_gain()))) {}

void Sandwich::join(Residual& r, const Tensor& branch) {
  Residual own{branch, {}};
  const Tensor rows = after_.read(own);
  PreNorm::join(r, after_.weight.defined() ? stream().map_writer(rows, -1) : rows);
}

}  // namespace isonorm::nn
