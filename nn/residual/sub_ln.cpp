#include "nn/residual/sub_ln.h"

#include <cmath>

namespace isonorm::nn {

double sub_ln_gain(const BlockPlace& p) {
  const double own = static_cast<double>(p.depth), other = static_cast<double>(p.other_depth);
  if (p.stack == Stack::decoder) return std::sqrt(std::log(3 * own));
  return std::sqrt(std::log(2 * own) * (p.stack == Stack::encoder ? std::log(3 * other) / 3 : 1));
}

void initialise_sub_ln(const BlockWeights& w, const BlockPlace& p) { initialise_scaled(w, sub_ln_gain(p)); }

}  // namespace isonorm::nn
