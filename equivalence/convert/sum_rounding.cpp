#include "equivalence/convert/sum_rounding.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/system/parallel.h"
#include "core/view.h"

namespace isonorm::equivalence {
namespace {

constexpr int64_t kGrain = 64;      // slices of a block, at most
constexpr double kRanks = 1 << 20;  // to a step: below, the order of two entries would be that of rounding in f64

// Entries of a slice, the one to change first at the top of a heap: that nearest to the middle, of several the first.
struct Candidate {
  int64_t rank, at;
  double step;
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank < other.rank : at > other.at; }
};

class Slice {
 public:
  explicit Slice(NumberFormat format) : steps_(format), largest_number_(largest_number(format)) {}

  // x: n numbers, `stride` apart; y: the same, each rounded to the nearest.
  template <class T> void mend(const double* x, T* y, int64_t n, int64_t stride) {
    double off = 0, largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      off += static_cast<double>(y[i * stride]) - x[i * stride];
      largest = std::max(largest, std::abs(x[i * stride]));
    }
    const double sign = off < 0 ? -1 : 1, enough = steps_.at(largest) / 2;
    off *= sign;
    if (off <= enough) return;
    candidates_.clear();
    for (int64_t i = 0; i < n; ++i) {
      const double step = steps_.at(x[i * stride]), moved = sign * (static_cast<double>(y[i * stride]) - x[i * stride]);
      const bool fits = std::abs(static_cast<double>(y[i * stride]) - sign * step) <= largest_number_;
      if (moved > 0 && fits) candidates_.push_back({std::llround(moved / step * kRanks), i, step});
    }
    std::make_heap(candidates_.begin(), candidates_.end());
    while (off > enough && !candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end());
      const Candidate c = candidates_.back();
      candidates_.pop_back();
      T& value = y[c.at * stride];
      value = T(static_cast<double>(value) - sign * c.step);
      off -= c.step;
    }
  }

 private:
  Steps steps_;
  double largest_number_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Tensor rounded_with_sum(const Tensor& x, int dim, NumberFormat format, const std::string& name) {
  const Tensor exact = detached::contiguous(x), nearest = rounded(exact, format, name);
  if (format == DType::f64 || x.numel() == 0) return nearest;
  const int64_t n = x.size(dim);
  int64_t stride = 1;
  for (int i = dim + 1; i < x.rank(); ++i) stride *= x.size(i);
  const double* from = exact.data<double>();
  visit_floating(format.dtype, "round", [&]<class T>() {
    T* to = nearest.mutable_data<T>();
    parallel_for(even_blocks(x.numel() / n, kGrain), [&](int64_t begin, int64_t end) {
      Slice slice(format);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i / stride * n * stride + i % stride;
        slice.mend(from + at, to + at, n, stride);
      }
    });
  });
  return nearest;
}

}  // namespace isonorm::equivalence
