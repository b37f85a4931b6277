// The matrix products of one training step, replayed alone: what a step would take if it did nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/cases.h"
#include "core/tensor.h"

namespace isonorm::bench {

// C [m, n] = A [m, k] B [k, n], `batch` times (heads of all samples) and `times` in a step; a transposed operand is
// stored the other way round.
struct Gemm {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t batch, times;
};

// Of a training step. Per linear layer y = x W^T: forward, gradient of x (but for the patches, which take none),
// gradient of W. Per attention: q k^T and p v, and in the backward q k^T once more and its four; a causal one counts in
// full.
std::vector<Gemm> gemms_of_step(const Case& c);
// Of a forward pass over `batch` samples alone.
std::vector<Gemm> gemms_of_forward(const Case& c, int64_t batch);

double flops(const std::vector<Gemm>& gemms);

// Runs a list on operands of its own, by OpenBLAS (products with a batch one per thread, the others on all threads) or
// by the library's kernel.
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

}  // namespace isonorm::bench
