// The matrix products of one training step, replayed alone: the floor under a step that uses this BLAS.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/cases.h"

namespace isonorm::bench {

// C [m, n] = A [m, k] B [k, n], `batch` times (heads of all samples) and `times` in a step; a transposed operand is
// stored the other way round.
struct Gemm {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t batch, times;
};

// Per linear layer y = x W^T: forward, gradient of x (but for the patches, which take none), gradient of W. Per
// attention: q k^T and p v, once forward and recomputed once backward as far as needed (q k^T), and the four of the
// backward pass; a causal one counts in full.
std::vector<Gemm> gemms_of_step(const Case& c);

double flops(const std::vector<Gemm>& gemms);

// Median time of a replay of the list with cblas_sgemm, in milliseconds. Batched ones run one product per thread, the
// others on all threads.
double replay_ms(const std::vector<Gemm>& gemms, int repeats = 5);

}  // namespace isonorm::bench
