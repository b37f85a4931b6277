// A thread that prepares numbered items ahead of their use. Invariant: at most `ahead` items wait, and they come out in
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "io/data/each_tensor.h"

namespace isonorm::data {

// Internal: Prefetch without the type of its items.
class PrefetchThread {
 public:
  using Item = std::shared_ptr<void>;

  PrefetchThread(std::function<Item(int64_t)> make, int ahead);

  Item next();
  void seek(int64_t position);
  int64_t position() const;

 private:
  struct State;
  struct End {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, End> state_;
};

template <class T> class Prefetch {
 public:
  // Items are make(0), make(1), ...; the thread starts with the first next(). ahead = 0: no thread, next() calls make
  // itself. Throws if `ahead` is negative.
  Prefetch(std::function<T(int64_t)> make, int ahead)
      : thread_([make = std::move(make)](int64_t i) { return std::make_shared<T>(make(i)); }, ahead) {}

  // The next item. Rethrows an exception of make() for it; the next call tries the same item again. Throws (invalid) in
  // a child of fork() if the thread has started in the parent.
  T next() { return std::move(*std::static_pointer_cast<T>(thread_.next())); }
  // The next call of next() gives item `position`; waiting items are thrown away. Throws as next() in a child.
  void seek(int64_t position) { thread_.seek(position); }
  int64_t position() const { return thread_.position(); }  // of the next item

 private:
  PrefetchThread thread_;
};

// Ahead: numbered batches that a thread prepares, and copies to a device, before they are needed.

// Internal: Ahead without the type of its batches.
class Arrivals {
 public:
  struct Batch {
    std::shared_ptr<void> value;
    std::vector<Tensor*> tensors;  // the tensors in `value`
  };

  Arrivals(std::function<Batch(int64_t)> make, uint64_t seed, int ahead, Device device);
  ~Arrivals();

  Batch batch(int64_t step) const;
  Batch next();
  void seek(int64_t step);
  int64_t step() const;

 private:
  struct Travelling;
  struct Coming;
  std::function<Batch(int64_t)> make_;
  Device device_;
  std::unique_ptr<Coming> coming_;
};

// T: a batch whose tensors each_tensor() finds.
template <class T> class Ahead {
 public:
  // Calls make(0), make(1), ..., which return batches on the CPU, up to `batches` calls ahead of next() (0: in next()
  // itself), and copies them to `device`. Random functions called by make(step) draw from a sequence that depends only
  // on seed and step; the caller's default generator does not change. The thread and batch() each call their own copy
  // of `make`.
  Ahead(std::function<T(int64_t)> make, uint64_t seed, int batches, Device device)
      : arrivals_(
            [make = std::move(make)](int64_t step) {
              const auto value = std::make_shared<T>(make(step));
              Arrivals::Batch b{value, {}};
              each_tensor(*value, [&](Tensor& x) { b.tensors.push_back(&x); });
              return b;
            },
            seed, batches, device) {}

  // The batch of any step. Does not change what next() returns.
  T batch(int64_t step) const { return taken(arrivals_.batch(step)); }
  // Like Prefetch, for batches. Work on the device that reads a batch waits until the batch has arrived there.
  T next() { return taken(arrivals_.next()); }
  void seek(int64_t step) { arrivals_.seek(step); }
  int64_t step() const { return arrivals_.step(); }

 private:
  static T taken(const Arrivals::Batch& b) { return std::move(*std::static_pointer_cast<T>(b.value)); }

  Arrivals arrivals_;
};

// The batches of an epoch, for a range-for over a loader.

// Iterates from the loader's next batch to the end of its epoch. Advancing takes the batch from the loader, so
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
