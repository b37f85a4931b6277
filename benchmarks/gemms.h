// The matrix products of a training step, replayed alone: a lower bound for the time of the step. And the machine's peak
// arithmetic: f32 multiply-adds that stay in registers.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/cases.h"
#include "core/tensor.h"

namespace isonorm::bench {

// C [m, n] = A [m, k] B [k, n], `batch` times (samples x heads), and `times` in a step. A transposed operand is stored
// column by column.
struct Gemm {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t batch, times;
};

// The products of a training step. Per linear layer y = x W^T: forward, gradient of x (except for the patches,
// which need none), gradient of W. Per attention: q k^T and p v, and in the backward q k^T again and the four
// gradients. Causal attention counts in full.
std::vector<Gemm> gemms_of_step(const Case& c);
// The products of a forward pass over `batch` samples.
std::vector<Gemm> gemms_of_forward(const Case& c, int64_t batch);

double flops(const std::vector<Gemm>& gemms);

// Runs a list of products on operands of its own, either with OpenBLAS (each batched product on one thread, others on
// all threads) or with the library's kernel.
enum class Products { openblas, ours };
class Replay {
 public:
  Replay(std::vector<Gemm> gemms, Products by);
  void run();

 private:
  void run(const Gemm& g);

  std::vector<Gemm> gemms_;
  Products by_;
  Tensor a_, b_, c_;  // as large as the largest operand
};

// Performs `flops` operations (a multiply-add counts as two) in independent chains in the widest registers that the
// kernels use (core/kernels/kernel.h, isa()), divided among the threads. Nothing is loaded or stored, so no program can
// be faster.
void multiply_add(double flops);

}  // namespace isonorm::bench
