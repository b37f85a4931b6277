// Random inputs of samples. The numbers depend only on the op's name and the order of its samples, so a new op does not
// change the inputs of others.
#pragma once

#include <random>
#include <string_view>
#include <utility>

#include "tests/support/array.h"

namespace isonorm::test {

class Draw {
 public:
  explicit Draw(std::string_view op);

  // Uniform in [lo, hi], away from every kink by at least 3 % of the range: more than ten finite-difference steps.
  Array uniform(const Dims& shape, double lo, double hi, const std::vector<double>& kinks = {});
  Array normal(const Dims& shape, double mean = 0, double deviation = 1);
  // 0, gap, 2 gap, ... around 0 in random order: no ties, and none within a finite-difference step.
  Array distinct(const Dims& shape, double gap = 0.1);
  Array index(const Dims& shape, int64_t below);  // in [0, below)
  Array mask(const Dims& shape);                  // 0 or 1
  int64_t integer(int64_t below);

 private:
  double unit();  // uniform in [0, 1)
  std::mt19937_64 random_;
};

// Shapes with ranks from `min_rank` to `max_rank` (at most 5): with sizes of 1, empty ones, and sizes above a vector's
// length.
std::vector<Dims> shapes(int min_rank = 0, int max_rank = 5);
bool is_empty(const Dims& shape);
// Pairs of shapes that broadcast: each of shapes() with itself, and with stretched dimensions.
std::vector<std::pair<Dims, Dims>> shape_pairs();

// More elements than one block of work of any kernel, so that threads share it.
inline const Dims kLarge = {3, 17, 1001};

}  // namespace isonorm::test
