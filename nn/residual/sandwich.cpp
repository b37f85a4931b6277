#include "nn/residual/sandwich.h"

namespace isonorm::nn {

Sandwich::Sandwich(int64_t width, const ConnectionOptions& o)
    : PreNorm(width, o), behind_(add("after", PreNorm(width, o.not_foldable()))) {}

void Sandwich::join(Residual& r, const Tensor& branch) {
  Residual own{branch, {}};
  const Tensor rows = behind_.read(own);
  PreNorm::join(r, behind_.weight.defined() ? projected(rows) : rows);
}

template BlockConnections block_of<Sandwich>(int64_t, const ConnectionOptions&, const BlockPlace&);

}  // namespace isonorm::nn
