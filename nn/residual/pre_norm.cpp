#include "nn/residual/pre_norm.h"

#include <cmath>

namespace isonorm::nn {

Tensor PreNorm::read(Residual& r) { return (*this)(r, precision().branch_dtype(r.sum.dtype())); }

void PreNorm::join(Residual& r, const Tensor& branch) { r += branch; }

Sandwich::Sandwich(int64_t width, const ConnectionOptions& o)
    : PreNorm(width, o), behind_(add("after", PreNorm(width, o.not_foldable()))) {}

void Sandwich::join(Residual& r, const Tensor& branch) {
  Residual own{branch, {}};
  const Tensor rows = behind_.read(own);
  PreNorm::join(r, behind_.weight.defined() ? projected(rows) : rows);
}

template BlockConnections block_of<PreNorm>(int64_t, const ConnectionOptions&, const BlockPlace&);
template BlockConnections block_of<Sandwich>(int64_t, const ConnectionOptions&, const BlockPlace&);
template std::unique_ptr<Connection> last_of<PreNorm>(int64_t, const ConnectionOptions&);

ConnectionOptions scaled_norms(const char* name, ConnectionOptions norms, const BlockPlace& place) {
  check_place(name, place);
  norms.factor = 1 / std::sqrt(static_cast<double>(place.index + 1));
  return norms;
}

BlockConnections scaled_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return block_of<PreNorm>(width, scaled_norms("layer_norm_scaling", norms, place), place);
}

double sub_ln_gain(const BlockPlace& p) {
  const double own = static_cast<double>(p.depth), other = static_cast<double>(p.other_depth);
  if (p.stack == Stack::decoder) return std::sqrt(std::log(3 * own));
  return std::sqrt(std::log(2 * own) * (p.stack == Stack::encoder ? std::log(3 * other) / 3 : 1));
}

void initialise_sub_ln(const BlockWeights& w, const BlockPlace& p) { initialise_scaled(w, sub_ln_gain(p)); }

}  // namespace isonorm::nn
