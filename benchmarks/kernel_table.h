// The ops that benchmarks/kernels times by themselves; benchmarks/torch_kernels.py has the same table but for layers
// with norms, which PyTorch lacks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace isonorm::bench {

struct Times {
  double forward_ms = 0, backward_ms = 0;
};
// Runs an op on inputs of its own, forward with a graph and backward to all of its inputs: once on the CPU, on a device
// several times before it is waited for; the times are those of one.
using Run = std::function<Times()>;

struct KernelOp {
  std::string_view name;
  std::string_view rows_are, width_is;  // what the two sizes mean
  Run (*make)(int64_t rows, int64_t width, TensorOptions like);
  // Multiply-adds or elements: what the time should be proportional to.
  double (*work)(double rows, double width);
};

std::span<const KernelOp> kernel_ops();
// Throws listing the names.
const KernelOp& kernel_op(std::string_view name);

}  // namespace isonorm::bench
