// Sampler: chooses the examples of each batch. The choice depends only on seed and step, so a resumed training sees the
// same batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace isonorm::data {

struct SamplerOptions {
  bool shuffle = true;                 // every epoch in a new random order; false: in order
  std::optional<bool> drop_last = {};  // skip the last batch of an epoch if it is smaller; none: as `shuffle`
  std::vector<double> weights = {};    // one per example: draws with replacement, in proportion to them; empty: none
};

// An epoch visits the `examples`, `rows` at a time. With drop_last the examples at its end that fill no batch are
// skipped (they come up in other epochs if it shuffles); without it the last batch is smaller. With weights an epoch
// draws `examples` examples independently of each other, each with probability weight / sum of weights
// (torch.utils.data.WeightedRandomSampler).
class Sampler {
 public:
  // Throws if rows is below 1, or above the number of examples with drop_last; if there are no examples; if there are
  // weights without shuffle, another number of weights than examples, a weight that is negative or not finite, or a sum
  // of 0.
  Sampler(int64_t examples, int64_t rows, uint64_t seed, SamplerOptions options = {});

  // Indices in [0, examples) of the examples of batch `step` (from 0), distinct unless there are weights. Valid until
  // the next call. Throws if step is negative. Draws all indices again if the previous call was for another epoch.
  std::span<const int64_t> batch(int64_t step);

  int64_t rows() const { return rows_; }
  int64_t steps_per_epoch() const { return (examples() + (drop_last_ ? 0 : rows_ - 1)) / rows_; }

 private:
  int64_t examples() const { return static_cast<int64_t>(order_.size()); }
  void draw(int64_t epoch);

  std::vector<int64_t> order_;
  int64_t rows_;
  uint64_t seed_;
  bool shuffle_, drop_last_;
  std::vector<double> sums_;  // cumulative sums of the weights
  int64_t epoch_ = -1;        // the epoch that `order_` holds; -1: none yet
};

}  // namespace isonorm::data
