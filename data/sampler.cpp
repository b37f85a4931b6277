#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/formulas/philox.h"

namespace isonorm::data {

Sampler::Sampler(int64_t examples, int64_t rows, uint64_t seed, bool shuffle)
    : rows_(rows), seed_(seed), shuffle_(shuffle) {
  check(rows >= 1 && rows <= examples, "sampler: ", rows, " rows a batch, expected 1 to the number of examples, ",
        examples);
  order_.resize(static_cast<size_t>(examples));
  std::iota(order_.begin(), order_.end(), 0);
}

// Fisher-Yates (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 P) from the identity, one draw per position.
void Sampler::shuffle(int64_t epoch) {
  std::iota(order_.begin(), order_.end(), 0);
  for (int64_t i = static_cast<int64_t>(order_.size()) - 1; i > 0; --i)
    std::swap(order_[i], order_[below(i + 1, philox(seed_, i, epoch).wide(0))]);
  epoch_ = epoch;
}

std::span<const int64_t> Sampler::batch(int64_t step) {
  check(step >= 0, "sampler: step ", step, " is negative");
  const int64_t epoch = step / steps_per_epoch();
  if (shuffle_ && epoch != epoch_) shuffle(epoch);
  const int64_t begin = step % steps_per_epoch() * rows_;
  return {order_.data() + begin, static_cast<size_t>(std::min(rows_, examples() - begin))};
}

}  // namespace isonorm::data
