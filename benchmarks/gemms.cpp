#include "benchmarks/gemms.h"

#include <algorithm>

#include <cblas.h>

#include "core/kernels/matmul.h"
#include "isonorm.h"

namespace isonorm::bench {
namespace {

enum class Pass { forward, training, training_without_input };

// y [rows, out] = x [rows, in] W^T [in, out]; in training also its gradients.
void add_linear(std::vector<Gemm>& list, Pass pass, int64_t rows, int64_t in, int64_t out, int64_t times) {
  list.push_back({rows, out, in, false, true, 1, times});
  if (pass == Pass::forward) return;
  if (pass == Pass::training) list.push_back({rows, in, out, false, false, 1, times});
  list.push_back({out, in, rows, true, false, 1, times});
}

std::vector<Gemm> gemms_of(const Case& c, int64_t batch, bool training) {
  std::vector<Gemm> list;
  const Pass pass = training ? Pass::training : Pass::forward;
  const int64_t rows = batch * c.length(), d = c.width, t = c.length(), h = d / c.heads, heads = batch * c.heads;
  if (!c.is_gpt())
    add_linear(list, training ? Pass::training_without_input : pass, batch * c.patches(),
               c.patch * c.patch * c.channels, d, 1);
  add_linear(list, pass, rows, d, 3 * d, c.depth);
  add_linear(list, pass, rows, d, d, c.depth);
  add_linear(list, pass, rows, d, 4 * d, c.depth);
  add_linear(list, pass, rows, 4 * d, d, c.depth);
  list.push_back({t, t, h, false, true, heads, c.depth * (training ? 3 : 1)});   // q k^T, in backward too; dp = dy v^T
  list.push_back({t, h, t, false, false, heads, c.depth * (training ? 2 : 1)});  // p v; dq = ds k
  if (training) list.push_back({t, h, t, true, false, heads, 2 * c.depth});      // dv = p^T dy; dk = ds^T q
  if (c.is_gpt())
    add_linear(list, pass, rows, d, c.vocab, 1);
  else
    add_linear(list, pass, batch, d, c.classes, 1);
  return list;
}

void run_openblas(const Gemm& g, const float* a, const float* b, float* c) {
  const auto blas_int = [](int64_t n) { return static_cast<blasint>(n); };
  const auto product = [&](int64_t i) {
    cblas_sgemm(CblasRowMajor, g.transpose_a ? CblasTrans : CblasNoTrans, g.transpose_b ? CblasTrans : CblasNoTrans,
                blas_int(g.m), blas_int(g.n), blas_int(g.k), 1.0f, a + i * g.m * g.k,
                blas_int(g.transpose_a ? g.m : g.k), b + i * g.k * g.n, blas_int(g.transpose_b ? g.k : g.n), 0.0f,
                c + i * g.m * g.n, blas_int(g.n));
  };
  if (g.batch == 1) {
    openblas_set_num_threads(num_threads());
    return product(0);
  }
  parallel_for(g.batch, 1, [&](int64_t begin, int64_t end) {
    const BlasCall call;
    for (int64_t i = begin; i < end; ++i) product(i);
  });
}

// Views the first entries of `data` as `batch` matrices [rows, columns], each stored column by column if `transposed`.
Tensor matrices(const Tensor& data, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  const int64_t down = transposed ? 1 : columns, right = transposed ? rows : 1;
  if (batch == 1) return as_strided(data, {rows, columns}, {down, right}, 0);
  return as_strided(data, {batch, rows, columns}, {rows * columns, down, right}, 0);
}

}  // namespace

std::vector<Gemm> gemms_of_step(const Case& c) { return gemms_of(c, c.batch, true); }
std::vector<Gemm> gemms_of_forward(const Case& c, int64_t batch) { return gemms_of(c, batch, false); }

double flops(const std::vector<Gemm>& gemms) {
  double sum = 0;
  for (const Gemm& g : gemms)
    sum += 2.0 * static_cast<double>(g.m * g.n * g.k) * static_cast<double>(g.batch * g.times);
  return sum;
}

Replay::Replay(std::vector<Gemm> gemms, Products by) : gemms_(std::move(gemms)), by_(by) {
  int64_t a_size = 0, b_size = 0, c_size = 0;
  for (const Gemm& g : gemms_) {
    a_size = std::max(a_size, g.batch * g.m * g.k);
    b_size = std::max(b_size, g.batch * g.k * g.n);
    c_size = std::max(c_size, g.batch * g.m * g.n);
  }
  // Neither zeros nor denormals, because some kernels are faster or slower on them.
  a_ = randn({a_size}), b_ = randn({b_size}), c_ = zeros({c_size});
}

void Replay::run(const Gemm& g) {
  if (by_ == Products::openblas) return run_openblas(g, a_.data<float>(), b_.data<float>(), c_.mutable_data<float>());
  kernels::matmul.on(kCpu, matrices(c_, g.batch, g.m, g.n, false), matrices(a_, g.batch, g.m, g.k, g.transpose_a),
                     matrices(b_, g.batch, g.k, g.n, g.transpose_b), {});
}

void Replay::run() {
  for (const Gemm& g : gemms_)
    for (int64_t i = 0; i < g.times; ++i) run(g);
}

}  // namespace isonorm::bench
