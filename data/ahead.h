// Batches in the order of their numbers, prepared by a thread and on their way to a device before they are asked for.
#pragma once

#include <memory>

#include "core/memory/upload.h"
#include "data/prefetch.h"

namespace isonorm::data {

// B: two tensors.
template <class B> class Ahead {
 public:
  // make(0), make(1), ... on the CPU, `batches` of them ahead of next() (0: next() makes them itself), on `device`.
  Ahead(std::function<B(int64_t)> make, int batches, Device device)
      : coming_(
            [make = std::move(make), device](int64_t step) {
              const auto [x, y] = make(step);
              return Coming{upload(x, device), upload(y, device)};
            },
            batches) {}

  // As Prefetch. What is computed with the batch on its device follows its arrival.
  B next() {
    const Coming c = coming_.next();
    return {c.first->take(), c.second->take()};
  }
  void seek(int64_t step) { coming_.seek(step); }
  int64_t step() const { return coming_.position(); }

 private:
  struct Coming {
    std::unique_ptr<Upload> first, second;
  };

  Prefetch<Coming> coming_;
};

}  // namespace isonorm::data
