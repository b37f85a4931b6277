// The batches of an epoch, for a range-for over a loader.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>

namespace isonorm::data {

// Iterates from the loader's next batch to the end of that batch's epoch. Advancing takes the batch from the loader, so
// an iteration can run only once; copies of an iterator show the same batch.
template <class Loader> class EpochIterator {
 public:
  using difference_type = int64_t;
  using value_type = decltype(std::declval<Loader&>().next());

  explicit EpochIterator(Loader& loader)
      : loader_(&loader),
        left_(loader.steps_per_epoch() - loader.step() % loader.steps_per_epoch()),
        batch_(loader.next()) {}

  const value_type& operator*() const { return batch_; }
  EpochIterator& operator++() {
    if (--left_ > 0) batch_ = loader_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const EpochIterator& i, std::default_sentinel_t) { return i.left_ == 0; }

 private:
  Loader* loader_;
  int64_t left_;  // number of batches left in the epoch, including this one
  value_type batch_;
};

}  // namespace isonorm::data
