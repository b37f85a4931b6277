// A graph of the emulated cuDNN as a program: tensors, and operations that run in order.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "tests/emulated_gpu/libraries/cudnn.h"

namespace isonorm::gpu::emulated {

using Index = std::array<int64_t, 4>;

struct TensorInfo {
  Index size, stride;
  cudnnDataType_t type;
  int64_t id, alignment;
  bool is_virtual, by_value;
};
struct Step {
  cudnnBackendDescriptorType_t kind;
  int mode = 0;  // for elementwise operations and reductions
  int64_t axis = 0;
  int x = -1, y = -1, b = -1, t = -1;  // indices of tensors
};
struct Program {
  std::vector<TensorInfo> tensors;
  std::vector<Step> steps;
  int64_t workspace = 0;  // in bytes
};

// A tensor while a program runs: in device memory, or in a vector of its own.
struct Values {
  const TensorInfo* info;
  void* at = nullptr;
  std::shared_ptr<std::vector<double>> own = nullptr;

  // Dimensions with a single element are broadcast.
  double get(const Index& i) const;
  void put(const Index& i, double v) const;  // rounds to the tensor's type
};

// values: for each tensor.
void run(const Program& program, std::vector<Values> values);

}  // namespace isonorm::gpu::emulated
