// What the stand-in for cuDNN makes of a graph: tensors, and operations that are done one after the other.
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
  int mode = 0;  // of an operation by elements or a reduction
  int64_t axis = 0;
  int x = -1, y = -1, b = -1, t = -1;  // tensors by their number
};
struct Program {
  std::vector<TensorInfo> tensors;
  std::vector<Step> steps;
  int64_t workspace = 0;  // bytes
};

// A tensor while a program runs: in memory of the device, or in numbers of its own.
struct Values {
  const TensorInfo* info;
  void* at = nullptr;
  std::shared_ptr<std::vector<double>> own = nullptr;

  // A dimension of one element is read again.
  double get(const Index& i) const;
  void put(const Index& i, double v) const;  // rounded to the tensor's type
};

// values: of each tensor.
void run(const Program& program, std::vector<Values> values);

}  // namespace isonorm::gpu::emulated
