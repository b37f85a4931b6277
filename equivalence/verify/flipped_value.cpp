#include "equivalence/verify/flipped_value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "streams/stream.h"

namespace isonorm::equivalence {

double share(double difference, double bound) {
  return difference == 0          ? 0
         : difference <= bound    ? difference / bound
         : std::isnan(difference) ? INFINITY
         : bound > 0              ? difference / bound
                                  : INFINITY;
}

double flipped_share(std::vector<double> beyond, double flip, streams::Form form, streams::Role role) {
  size_t last = beyond.size();
  while (last > 0 && beyond[last - 1] == 0) --last;
  if (last == 0) return 0;
  if (form == streams::Form::crms_isometric && beyond.size() > 1) {
    const size_t k = std::max<size_t>(last - 1, 1);  // a later column moves these entries less
    const double scale = flip / std::sqrt(static_cast<double>(k) * static_cast<double>(k + 1));
    double worst = share(beyond[k], static_cast<double>(k) * scale);
    for (size_t i = 0; i < k; ++i) worst = std::max(worst, share(beyond[i], scale));
    return worst;
  }
  std::sort(beyond.begin(), beyond.end(), std::greater<>());
  const bool two = role == streams::Role::writer && form == streams::Form::crms_norm;
  const size_t most = two ? 2 : 1;
  const double first = share(beyond[0], flip), others = two ? 0 : flip / static_cast<double>(beyond.size());
  return beyond.size() <= most ? first : std::max(first, share(beyond[most], others));
}

}  // namespace isonorm::equivalence
