#include "equivalence/verify/compare_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/system/parallel.h"

namespace isonorm::equivalence {

double share(double difference, double bound) {
  return difference == 0          ? 0
         : difference <= bound    ? difference / bound
         : std::isnan(difference) ? INFINITY
         : bound > 0              ? difference / bound
                                  : INFINITY;
}

namespace {

// The largest share of its bound that an entry has if one column of the map was flipped: the column that explains the
// most. `last`: the last entry that differs, which the column must reach.
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

namespace {

constexpr int64_t kGrain = 64;  // rows of a block, at most

// Raises share to difference / bound if that is larger. It seldom is, so the division is avoided.
inline void raise(double& share, double difference, double bound) {
  if (difference >= share * bound * (1 - 0x1p-50)) share = std::max(share, difference / bound);
}

class RowComparer {
 public:
  RowComparer(const std::string& name, const RowRules& rules) : name_(name), rules_(rules) {}

  void compare(int64_t row, const Carried& x, const Carried& y) {
    const size_t n = x.value.size();
    if (row >= rules_.blind[0] && row < rules_.blind[1]) {
      found_.blind = found_.blind || beyond_rounding(x, y);
      return;
    }
    found_.entries += static_cast<int64_t>(n);
    double size_x = 0, size_y = 0, total = 0;
    for (size_t i = 0; i < n; ++i) {
      size_x = std::max(size_x, x.size[i]), size_y = std::max(size_y, y.size[i]);
      total += std::abs(x.value[i] - y.value[i]);
    }
    if (total == 0) return;
    const double f64 = rules_.arithmetic * (size_x + size_y) + static_cast<double>(n) * smallest_step(DType::f64);
    RowFindings here;
    if (total < INFINITY)
      for (size_t i = 0; i < n; ++i) {
        const double difference = std::abs(x.value[i] - y.value[i]), of_x = x.rounding[i], of_y = y.rounding[i] + f64;
        raise(here.second_rounded, difference, of_y);
        raise(here.first_rounded, difference, of_x + f64);
        raise(here.both_rounded, difference, of_x + of_y);
        raise(here.second_rounded_and_flipped, difference, of_y + x.flip);
      }
    else
      here.second_rounded = here.first_rounded = here.both_rounded = here.second_rounded_and_flipped = INFINITY;
    if (here.second_rounded > 1) {
      beyond_.clear();
      for (size_t i = 0; i < n; ++i)
        beyond_.push_back(std::max(0.0, std::abs(x.value[i] - y.value[i]) - y.rounding[i] - f64));
      here.second_rounded_and_flipped =
          std::max(here.second_rounded_and_flipped, flipped_share(beyond_, x.flip, rules_.map));
    }
    found_.add(here);
    if (here.both_rounded > 1) take_down(row, x, y, f64, size_x + size_y);
  }

  const RowFindings& found() const { return found_; }

 private:
  bool beyond_rounding(const Carried& x, const Carried& y) const {
    for (size_t i = 0; i < x.value.size(); ++i)
      if (std::abs(x.value[i] - y.value[i]) >
          x.rounding[i] + y.rounding[i] + rules_.arithmetic * (std::abs(x.value[i]) + std::abs(y.value[i])))
        return true;
    return false;
  }

  // Notes the entries of a row that rounding of both does not explain.
  void take_down(int64_t row, const Carried& x, const Carried& y, double f64, double size) {
    const size_t n = x.value.size();
    double largest = 0;
    for (size_t i = 0; i < n; ++i) largest = larger(largest, std::max(std::abs(x.value[i]), std::abs(y.value[i])));
    for (size_t i = 0; i < n; ++i) {
      const double difference = std::abs(x.value[i] - y.value[i]), bound = x.rounding[i] + y.rounding[i] + f64;
      if (share(difference, bound) <= 1) continue;
      const double halves = i + 1 == n ? static_cast<double>(n) : 2 + std::log(static_cast<double>(n));
      found_.rounded_between =
          std::max(found_.rounded_between, share(difference, bound + halves * rules_.coarsest / 2 * size));
      ++found_.differing;
      const double deviation = difference / largest;
      if (found_.largest && !(deviation > found_.largest->deviation)) continue;
      const int64_t at = rules_.first_row + row;
      found_.largest =
          EntryPlace{name_, n > 1 ? Dims{at, static_cast<int64_t>(i)} : Dims{at}, y.value[i], x.value[i], deviation};
    }
  }

  const std::string& name_;
  const RowRules& rules_;
  RowFindings found_;
  std::vector<double> beyond_;  // by entry of a row: the difference that rounding of the second does not explain
};

}  // namespace

void RowFindings::add(const RowFindings& other) {
  for (auto share : {&RowFindings::second_rounded, &RowFindings::first_rounded, &RowFindings::both_rounded,
                     &RowFindings::second_rounded_and_flipped, &RowFindings::rounded_between})
    this->*share = std::max(this->*share, other.*share);
  entries += other.entries, differing += other.differing, blind = blind || other.blind;
  if (other.largest && (!largest || other.largest->deviation > largest->deviation)) largest = other.largest;
}

void RowFindings::rule_out_rounding() {
  second_rounded = first_rounded = both_rounded = second_rounded_and_flipped = rounded_between = INFINITY;
}

RowFindings compare_rows(const std::string& name, const Canonical::Rows& a, const Canonical::Rows& b,
                         const RowRules& rules) {
  const Partition blocks = even_blocks(a.shape()[0], kGrain);
  std::vector<RowFindings> found(static_cast<size_t>(blocks.count));
  parallel_for(blocks, [&](int64_t begin, int64_t end, int64_t block) {
    RowComparer comparer(name, rules);
    Carried x, y;
    for (int64_t row = begin; row < end; ++row) {
      a.read(row, x), b.read(row, y);
      comparer.compare(row, x, y);
    }
    found[static_cast<size_t>(block)] = comparer.found();
  });
  RowFindings all;
  for (const RowFindings& f : found) all.add(f);
  return all;
}

}  // namespace isonorm::equivalence
