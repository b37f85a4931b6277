#include "io/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/formulas/philox.h"

namespace isonorm::data {

Sampler::Sampler(int64_t examples, int64_t rows, uint64_t seed, SamplerOptions options)
    : rows_(rows),
      seed_(seed),
      shuffle_(options.shuffle),
      drop_last_(options.drop_last.value_or(options.shuffle)),
      sums_(std::move(options.weights)) {
  check(examples >= 1, "sampler: ", examples, " examples, expected at least 1");
  check(rows >= 1 && (rows <= examples || !drop_last_), "sampler: ", rows,
        " rows a batch, expected 1 to the number of examples, ", examples,
        "; with drop_last = false the last batch may be smaller");
  order_.resize(static_cast<size_t>(examples));
  std::iota(order_.begin(), order_.end(), 0);
  if (sums_.empty()) return;
  check(shuffle_, "sampler: weights without shuffle, expected with");
  check(std::ssize(sums_) == examples, "sampler: ", sums_.size(), " weights for ", examples, " examples");
  for (size_t i = 0; i < sums_.size(); ++i)
    check(sums_[i] >= 0 && std::isfinite(sums_[i]), "sampler: weight ", i, " is ", sums_[i],
          ", expected 0 or more, and finite");
  std::partial_sum(sums_.begin(), sums_.end(), sums_.begin());
  check(sums_.back() > 0 && std::isfinite(sums_.back()), "sampler: the weights sum to ", sums_.back(),
        ", expected above 0, and finite");
}

// Without weights: a Fisher-Yates shuffle (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 P) of the
// identity, one draw per position. With weights: inverts their distribution function.
void Sampler::draw(int64_t epoch) {
  const auto bits = [&](int64_t i) {
    return philox(seed_, static_cast<uint64_t>(i), static_cast<uint64_t>(epoch)).wide(0);
  };
  if (sums_.empty()) {
    std::iota(order_.begin(), order_.end(), 0);
    for (int64_t i = examples() - 1; i > 0; --i) std::swap(order_[i], order_[below(i + 1, bits(i))]);
  } else {
    const auto last = std::ranges::lower_bound(sums_, sums_.back());  // the product may be rounded up to the sum
    for (int64_t i = 0; i < examples(); ++i)
      order_[i] =
          std::min(std::ranges::upper_bound(sums_, unit_interval(bits(i)) * sums_.back()), last) - sums_.begin();
  }
  epoch_ = epoch;
}

std::span<const int64_t> Sampler::batch(int64_t step) {
  check(step >= 0, "sampler: step ", step, " is negative");
  const int64_t epoch = step / steps_per_epoch();
  if (shuffle_ && epoch != epoch_) draw(epoch);
  const int64_t begin = step % steps_per_epoch() * rows_;
  return {order_.data() + begin, static_cast<size_t>(std::min(rows_, examples() - begin))};
}

}  // namespace isonorm::data
