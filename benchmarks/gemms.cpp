#include "benchmarks/gemms.h"

#include <algorithm>
#include <chrono>

#include <cblas.h>

#include "core/parallel.h"

namespace isonorm::bench {
namespace {

// y [rows, out] = x [rows, in] W^T [in, out] and its two gradients.
void add_linear(std::vector<Gemm>& list, int64_t rows, int64_t in, int64_t out, int64_t times, bool input_gradient) {
  list.push_back({rows, out, in, false, true, 1, times});
  if (input_gradient) list.push_back({rows, in, out, false, false, 1, times});
  list.push_back({out, in, rows, true, false, 1, times});
}

void run(const Gemm& g, const float* a, const float* b, float* c) {
  const auto blas_int = [](int64_t n) { return static_cast<blasint>(n); };
  const auto product = [&](int64_t i) {
    cblas_sgemm(CblasRowMajor, g.transpose_a ? CblasTrans : CblasNoTrans, g.transpose_b ? CblasTrans : CblasNoTrans,
                blas_int(g.m), blas_int(g.n), blas_int(g.k), 1.0f, a + i * g.m * g.k,
                blas_int(g.transpose_a ? g.m : g.k), b + i * g.k * g.n, blas_int(g.transpose_b ? g.k : g.n), 0.0f,
                c + i * g.m * g.n, blas_int(g.n));
  };
  if (g.batch == 1) return product(0);
  parallel_for(g.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) product(i);
  });
}

// Small values of both signs: neither zeros nor denormals, which some kernels take faster or slower.
std::vector<float> operand(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i % 101) - 0.5f;
  return values;
}

}  // namespace

std::vector<Gemm> gemms_of_step(const Case& c) {
  std::vector<Gemm> list;
  const int64_t rows = c.batch * c.length(), d = c.width, t = c.length(), h = d / c.heads, heads = c.batch * c.heads;
  if (!c.is_gpt()) add_linear(list, c.batch * c.patches(), c.patch * c.patch * c.channels, d, 1, false);
  add_linear(list, rows, d, 3 * d, c.depth, true);
  add_linear(list, rows, d, d, c.depth, true);
  add_linear(list, rows, d, 4 * d, c.depth, true);
  add_linear(list, rows, 4 * d, d, c.depth, true);
  list.push_back({t, t, h, false, true, heads, 3 * c.depth});   // q k^T, recomputed in the backward; dp = dy v^T
  list.push_back({t, h, t, false, false, heads, 2 * c.depth});  // p v; dq = ds k
  list.push_back({t, h, t, true, false, heads, 2 * c.depth});   // dv = p^T dy; dk = ds^T q
  if (c.is_gpt())
    add_linear(list, rows, d, c.vocab, 1, true);
  else
    add_linear(list, c.batch, d, c.classes, 1, true);
  return list;
}

double flops(const std::vector<Gemm>& gemms) {
  double sum = 0;
  for (const Gemm& g : gemms)
    sum += 2.0 * static_cast<double>(g.m * g.n * g.k) * static_cast<double>(g.batch * g.times);
  return sum;
}

double replay_ms(const std::vector<Gemm>& gemms, int repeats) {
  int64_t a_size = 0, b_size = 0, c_size = 0;
  for (const Gemm& g : gemms) {
    a_size = std::max(a_size, g.batch * g.m * g.k);
    b_size = std::max(b_size, g.batch * g.k * g.n);
    c_size = std::max(c_size, g.batch * g.m * g.n);
  }
  const std::vector<float> a = operand(a_size), b = operand(b_size);
  std::vector<float> c(static_cast<size_t>(c_size));
  std::vector<double> times;
  for (int repeat = -1; repeat < repeats; ++repeat) {  // the first warms up
    const auto start = std::chrono::steady_clock::now();
    for (const Gemm& g : gemms)
      for (int64_t i = 0; i < g.times; ++i) run(g, a.data(), b.data(), c.data());
    if (repeat >= 0)
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace isonorm::bench
