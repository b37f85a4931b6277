// Which examples make up the batch of a step: a function of seed and step alone, so that a resumed run sees the same
// batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace isonorm::data {

// Every epoch visits the `examples` in a new random order, `rows` at a time; what is left at the end of an epoch and
// does not fill a batch is skipped (it comes up in other epochs). Without shuffling every epoch visits them in order, and
// its last batch holds what is left.
class Sampler {
 public:
  // Throws where rows is not in [1, examples].
  Sampler(int64_t examples, int64_t rows, uint64_t seed, bool shuffle = true);

  // Indices of the examples of batch `step` (from 0): distinct numbers in [0, examples). Valid until the next call.
  // Throws where step is negative. Costs a shuffle of all indices where the epoch differs from the call before.
  std::span<const int64_t> batch(int64_t step);

  int64_t rows() const { return rows_; }
  int64_t steps_per_epoch() const { return (examples() + (shuffle_ ? 0 : rows_ - 1)) / rows_; }

 private:
  int64_t examples() const { return static_cast<int64_t>(order_.size()); }
  void shuffle(int64_t epoch);

  std::vector<int64_t> order_;
  int64_t rows_;
  uint64_t seed_;
  bool shuffle_;
  int64_t epoch_ = -1;  // which `order_` holds; -1: none yet
};

}  // namespace isonorm::data
