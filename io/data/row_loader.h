// RowLoader: batches of token ids, by number or in sequence, prepared ahead of time and copied to a device.
#pragma once

#include "io/data/prefetch.h"

namespace isonorm::data {

inline constexpr int64_t kNoLabel = -100;  // a target that the loss ignores: CrossEntropyOptions::ignore_index

struct RowLoaderOptions {
  int64_t rows = 64, length = 128;  // arguments of Set::batch
  int prefetch = 2;                 // as in LoaderOptions
  Device device = kCpu;
  uint64_t seed = 0;  // for random functions that Set::batch calls
};

// A set has batch(rows, length, step), which returns a struct of tensors, and batches(rows, length), the number of
// batches in an epoch. Batches are drawn at random. Keeps a reference to the set.
template <class Set> class RowLoader {
 public:
  using Batch = decltype(std::declval<const Set&>().batch(0, 0, 0));

  RowLoader(const Set& set, RowLoaderOptions o)
      : set_(set),
        options_(o),
        ahead_([&set, o](int64_t step) { return set.batch(o.rows, o.length, step); }, o.seed, o.prefetch, o.device) {}
  RowLoader(const Set&&, RowLoaderOptions) = delete;  // the loader keeps a reference: name the set, and keep it

  Batch batch(int64_t step) const { return ahead_.batch(step); }  // of any step; does not change next()
  Batch next() { return ahead_.next(); }                          // of step 0, 1, ...; rethrows errors of the thread
  void seek(int64_t step) { ahead_.seek(step); }                  // the next call of next() returns this step's batch
  int64_t step() const { return ahead_.step(); }                  // step of the batch that next() returns
  int64_t steps_per_epoch() const { return set_.batches(options_.rows, options_.length); }

  // The batches that next() returns, up to the end of the epoch of the first one.
  EpochIterator<RowLoader> begin() { return EpochIterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  const Set& set_;
  RowLoaderOptions options_;
  Ahead<Batch> ahead_;
};

}  // namespace isonorm::data
