// Batches of rows of ids, by number or one after the other, prepared ahead and on a device.
#pragma once

#include "core/memory/upload.h"
#include "data/ahead.h"
#include "data/epoch.h"

namespace isonorm::data {

struct RowLoaderOptions {
  int64_t rows = 64, length = 128;  // of Set::batch
  int prefetch = 2;                 // as LoaderOptions
  Device device = kCpu;
};

// Set::batch(rows, length, step) gives two tensors; an epoch has as many of them as Set::batches(rows, length), drawn at
// random. Keeps a reference to the set.
template <class Set> class RowLoader {
 public:
  using Batch = decltype(std::declval<const Set&>().batch(0, 0, 0));

  RowLoader(const Set& set, RowLoaderOptions o)
      : set_(set),
        options_(o),
        ahead_(
            [&set, o](int64_t step) {
              const auto [x, y] = set.batch(o.rows, o.length, step);
              return Ahead::Pair(x, y);
            },
            o.prefetch, o.device) {}

  Batch batch(int64_t step) const {  // of any step; does not disturb next()
    const auto [x, y] = set_.batch(options_.rows, options_.length, step);
    return {upload(x, options_.device)->take(), upload(y, options_.device)->take()};
  }
  Batch next() {  // of step 0, 1, ...; rethrows what went wrong in the thread
    const auto [x, y] = ahead_.next();
    return {x, y};
  }
  void seek(int64_t step) { ahead_.seek(step); }  // the next next() gives this step's batch
  int64_t step() const { return ahead_.step(); }  // of the batch that next() gives
  int64_t steps_per_epoch() const { return set_.batches(options_.rows, options_.length); }

  // The batches that next() gives, to the end of the epoch that the first of them is in.
  EpochIterator<RowLoader> begin() { return EpochIterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  const Set& set_;
  RowLoaderOptions options_;
  Ahead ahead_;
};

}  // namespace isonorm::data
