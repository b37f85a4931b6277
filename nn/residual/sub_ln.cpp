#include "nn/residual/sub_ln.h"

#include <cmath>

namespace isonorm::nn {

double sub_ln_gain(int64_t depth) { return std::sqrt(std::log(2.0 * static_cast<double>(depth))); }
void initialise_sub_ln(const BlockWeights& w, int64_t depth) { initialise_scaled(w, sub_ln_gain(depth)); }

}  // namespace isonorm::nn
