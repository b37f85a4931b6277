#include "equivalence/verify/flipped_value.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace isonorm::equivalence {

double share(double difference, double bound) {
  return difference == 0          ? 0
         : difference <= bound    ? difference / bound
         : std::isnan(difference) ? INFINITY
         : bound > 0              ? difference / bound
                                  : INFINITY;
}

namespace {

// By one of the columns that reach entry `last`, behind which nothing differs: the column that explains the most.
double share_of_column(const std::vector<double>& beyond, double flip, const streams::Map& map, size_t last) {
  const auto by = [&](size_t column) {
    std::vector<double> moved(beyond.size() - 1);
    moved[column] = flip;
    map.bound_errors(moved);
    double worst = 0;
    for (size_t i = 0; i < beyond.size(); ++i) worst = std::max(worst, share(beyond[i], moved[i]));
    return worst;
  };
  if (map.basis()->first_column) return by(map.basis()->first_column(last));
  double least = INFINITY;
  for (size_t column = 0; column + 1 < beyond.size(); ++column) least = std::min(least, by(column));
  return least;
}

}  // namespace

double flipped_share(std::vector<double> beyond, double flip, const streams::Map& map) {
  size_t end = beyond.size();
  while (end > 0 && beyond[end - 1] == 0) --end;
  if (end == 0) return 0;
  const auto columns = map.columns();
  if (columns == streams::Map::Columns::basis && beyond.size() > 1) return share_of_column(beyond, flip, map, end - 1);
  std::sort(beyond.begin(), beyond.end(), std::greater<>());
  const bool two = columns == streams::Map::Columns::pairs;
  const size_t most = two ? 2 : 1;
  const double first = share(beyond[0], flip), others = two ? 0 : flip / static_cast<double>(beyond.size());
  return beyond.size() <= most ? first : std::max(first, share(beyond[most], others));
}

}  // namespace isonorm::equivalence
