// Batches in the order of their numbers, prepared by a thread and on their way to a device before they are asked for.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/tensor.h"

namespace isonorm::data {

class Ahead {
 public:
  using Pair = std::pair<Tensor, Tensor>;

  // make(0), make(1), ... on the CPU, `batches` of them ahead of next() (0: next() makes them itself), on `device`.
  Ahead(std::function<Pair(int64_t)> make, int batches, Device device);
  ~Ahead();

  // As Prefetch. What is computed with the batch on its device follows its arrival.
  Pair next();
  void seek(int64_t step);
  int64_t step() const;

 private:
  struct Coming;
  std::unique_ptr<Coming> coming_;
};

}  // namespace isonorm::data
