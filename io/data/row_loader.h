// Batches of rows of ids, by number or one after the other, prepared ahead and on a device.
#pragma once

#include "io/data/prefetch.h"

namespace isonorm::data {

inline constexpr int64_t kNoLabel = -100;  // a target that is not to be predicted: CrossEntropyOptions::ignore_index

struct RowLoaderOptions {
  int64_t rows = 64, length = 128;  // of Set::batch
  int prefetch = 2;                 // as LoaderOptions
  Device device = kCpu;
  uint64_t seed = 0;  // of the random functions that Set::batch calls, as Loader's
};

// Set::batch(rows, length, step) gives a struct of tensors; an epoch has Set::batches(rows, length) batches, drawn at
// random. Keeps a reference to the set.
template <class Set> class RowLoader {
 public:
  using Batch = decltype(std::declval<const Set&>().batch(0, 0, 0));

  RowLoader(const Set& set, RowLoaderOptions o)
      : set_(set),
        options_(o),
        ahead_([&set, o](int64_t step) { return set.batch(o.rows, o.length, step); }, o.seed, o.prefetch, o.device) {}
  RowLoader(const Set&&, RowLoaderOptions) = delete;  // the loader keeps a reference: name the set, and keep it

  Batch batch(int64_t step) const { return ahead_.batch(step); }  // of any step; does not disturb next()
  Batch next() { return ahead_.next(); }          // of step 0, 1, ...; rethrows what went wrong in the thread
  void seek(int64_t step) { ahead_.seek(step); }  // the next next() gives this step's batch
  int64_t step() const { return ahead_.step(); }  // of the batch that next() gives
  int64_t steps_per_epoch() const { return set_.batches(options_.rows, options_.length); }

  // The batches that next() gives, to the end of the epoch that the first of them is in.
  EpochIterator<RowLoader> begin() { return EpochIterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  const Set& set_;
  RowLoaderOptions options_;
  Ahead<Batch> ahead_;
};

}  // namespace isonorm::data
