// Ahead: numbered batches that a thread prepares, and copies to a device, before they are needed.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "io/data/each_tensor.h"

namespace isonorm::data {

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

}  // namespace isonorm::data
