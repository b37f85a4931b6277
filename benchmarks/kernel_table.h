// The ops that benchmarks/kernels times one by one. benchmarks/torch_kernels.py has the same table without layers with
// norms, which PyTorch lacks.
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
// Runs an op on its own inputs, forward with a graph and backward to all inputs. On a device it runs several times
// before a wait; times are per run.
using Run = std::function<Times()>;

struct KernelOp {
  std::string_view name;
  std::string_view rows_are, width_is;  // the meaning of the two sizes
  Run (*make)(int64_t rows, int64_t width, TensorOptions like);
  // Multiply-adds or elements: the time should be proportional to this number.
  double (*work)(double rows, double width);
};

std::span<const KernelOp> kernel_ops();
// Throws, listing the names, if there is no such op.
const KernelOp& kernel_op(std::string_view name);

// A table over odd sizes (cliffs.cpp): an op whose time per element jumps next to a multiple of 64 suits only some models.
// Prints, for every op, dtype and odd width, number of rows and sequence length, the time per element divided by that
// at the next multiple of 64, forward and backward together. Returns true if no ratio for a width exceeds 1.5.
bool print_cliffs();

}  // namespace isonorm::bench
