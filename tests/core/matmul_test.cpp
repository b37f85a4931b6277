// The matrix product's kernel, with each instruction set of this machine, against plain loops. An element's bits must
// depend only on its row and its column.
#include "core/kernels/matmul.h"

#include <dlfcn.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <thread>

#include "core/system/parallel.h"
#include "tests/support/catch.h"
#include "tests/support/random.h"
#include "tests/support/threads.h"

using namespace isonorm;
using test::randn;

namespace {

std::atomic<int> openblas_calls = 0;

template <class... A> void pass_on(const char* name, A... arguments) {
  ++openblas_calls;
  reinterpret_cast<void (*)(A...)>(dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace

// The library calls these functions instead of OpenBLAS's.
extern "C" void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                            const float* b, int ldb, float beta, float* c, int ldc) {
  pass_on("cblas_sgemm", order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
extern "C" void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lda,
                            const double* b, int ldb, double beta, double* c, int ldc) {
  pass_on("cblas_dgemm", order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

namespace {

using Product = void (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
using Gradient = void (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool);
struct Kernels {
  Isa isa;
  Product product;
  Gradient gradient;
  void (*keep_packed)(const Tensor&);
};

std::vector<Kernels> kernels_here() {
  std::vector<Kernels> all;
  const auto add = [&]<Isa I>() {
    if (I <= isa())
      all.push_back({I, &kernels::cpu::matmul<I>, &kernels::cpu::weight_gradient<I>, &kernels::cpu::keep_packed<I>});
  };
  add.operator()<kCompiled[0]>();
  if (kCompiled[1] != kCompiled[0]) add.operator()<kCompiled[1]>();
  if (kCompiled[2] != kCompiled[0]) add.operator()<kCompiled[2]>();
  return all;
}

// A random matrix [rows, columns]; if `transposed`, as a view of a buffer [columns, rows].
Tensor matrix(int64_t rows, int64_t columns, bool transposed, uint64_t seed, DType dtype) {
  const Tensor x = randn({transposed ? columns : rows, transposed ? rows : columns}, seed, 0, 1, dtype);
  return transposed ? as_strided(x, {rows, columns}, {1, rows}, 0) : x;
}

double at(const Tensor& t, int64_t i, int64_t j) {
  return as_strided(t, {}, {}, t.impl().offset + i * t.strides()[0] + j * t.strides()[1]).item();
}

// The largest error of out = base + a b in units of eps (2 + sqrt(k)) (|base| + |a| |b|). Rounding errors of a chain of
// k multiply-adds add up like a random walk: about 1 is expected; a wrong entry gives 1e5 and more.
double error_of(const Tensor& out, const Tensor& a, const Tensor& b, const std::vector<double>& base) {
  const int64_t m = out.size(0), n = out.size(1), k = a.size(1);
  const std::vector<double> c = out.to_vector<double>();
  std::vector<double> x, y;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) x.push_back(at(a, i, p));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t p = 0; p < k; ++p) y.push_back(at(b, p, j));
  double worst = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      long double sum = base[i * n + j], size = std::abs(base[i * n + j]) + 1e-300;
      for (int64_t p = 0; p < k; ++p) {
        const long double term = static_cast<long double>(x[i * k + p]) * y[j * k + p];
        sum += term, size += std::abs(term);
      }
      const double error = std::abs(static_cast<double>(c[i * n + j] - sum)) / static_cast<double>(size);
      worst = std::max(worst, error / (epsilon(out.dtype()) * (2 + std::sqrt(static_cast<double>(k)))));
      if (std::isnan(c[i * n + j])) return HUGE_VAL;
    }
  return worst;
}

// Sizes around the blocks: 6 rows, panels of 4 to 64 columns, strips of 48, a depth of 512. Few rows and few columns
// have their own kernels, with depths around 64.
const int64_t kSizes[][3] = {{1, 1, 1},     {16, 8, 1},    {17, 9, 3},    {15, 40, 7},    {40, 7, 9},    {97, 65, 130},
                             {49, 130, 31}, {16, 64, 512}, {23, 33, 513}, {19, 16, 1300}, {130, 700, 5}, {64, 128, 64},
                             {9, 700, 130}, {700, 5, 130}, {7, 70, 1300}, {15, 8, 513},   {1, 300, 700}, {3, 2, 1100},
                             {300, 7, 63},  {29, 1, 64},   {1, 1, 1000},  {301, 3, 16},   {5, 6, 64}};

}  // namespace

TEST_CASE("products of every size and layout agree with plain loops") {
  for (const Kernels& kernels : kernels_here())
    for (DType dtype : {DType::f32, DType::f64})
      for (const auto& [m, n, k] : kSizes)
        for (int layout = 0; layout < 4; ++layout) {
          const Tensor a = matrix(m, k, layout & 1, 1, dtype), b = matrix(k, n, layout & 2, 2, dtype);
          const Tensor out = empty({m, n}, {dtype}), bias = randn({n}, 3, 0, 1, dtype);
          INFO(name_of(kernels.isa) << ' ' << name_of(dtype) << ' ' << m << " x " << n << " x " << k << " layout "
                                    << layout);
          fill(out, NAN);  // its old contents are not read
          std::vector<double> base(m * n, 0.0);
          kernels.product(out, a, b, {});
          CHECK(error_of(out, a, b, base) < 4);
          fill(out, NAN);
          for (int64_t i = 0; i < m * n; ++i) base[i] = bias.to_vector<double>()[i % n];
          kernels.product(out, a, b, bias);
          CHECK(error_of(out, a, b, base) < 4);
          base = out.to_vector<double>();
          kernels.product(out, a, b, out);
          CHECK(error_of(out, a, b, base) < 4);
        }
}

TEST_CASE("weight gradients of every size agree with plain loops") {
  for (const Kernels& kernels : kernels_here())
    for (DType dtype : {DType::f32, DType::f64})
      for (const auto& [m, n, rows] : kSizes) {
        const Tensor dy = randn({rows, m}, 4, 0, 1, dtype), x = randn({rows, n}, 5, 0, 1, dtype);
        const Tensor dw = empty({m, n}, {dtype}), db = empty({m}, {dtype}), ones = empty({rows, 1}, {dtype});
        const Tensor transposed = as_strided(dy, {m, rows}, {1, m}, 0), column = as_strided(db, {m, 1}, {1, 1}, 0);
        INFO(name_of(kernels.isa) << ' ' << name_of(dtype) << ' ' << m << " x " << n << ", rows " << rows);
        fill(ones, 1);
        fill(dw, NAN), fill(db, NAN);
        std::vector<double> w(m * n, 0.0), b(m, 0.0);
        kernels.gradient(dw, db, dy, x, false);
        CHECK(error_of(dw, transposed, x, w) < 4);
        CHECK(error_of(column, transposed, ones, b) < 4);
        w = dw.to_vector<double>(), b = db.to_vector<double>();
        kernels.gradient(dw, db, dy, x, true);
        CHECK(error_of(dw, transposed, x, w) < 4);
        CHECK(error_of(column, transposed, ones, b) < 4);
        std::fill(b.begin(), b.end(), 0.0);
        kernels.gradient({}, db, dy, x, false);  // as for a frozen weight
        CHECK(error_of(column, transposed, ones, b) < 4);
      }
}

TEST_CASE("an element of a product has the same bits for any number of threads and any neighbours") {
  const int64_t m = 301, n = 203, k = 700;
  for (const Kernels& kernels : kernels_here()) {
    for (int layout = 0; layout < 4; ++layout) {
      const Tensor a = matrix(m, k, layout & 1, 6, DType::f32), b = matrix(k, n, layout & 2, 7, DType::f32);
      const auto bits = [&](int threads, int64_t rows, int64_t columns) {
        const test::Threads guard(threads);
        const Tensor out = empty({rows, columns});
        kernels.product(out, as_strided(a, {rows, k}, a.strides(), 0), as_strided(b, {k, columns}, b.strides(), 0), {});
        return out.to_vector<float>();
      };
      INFO(name_of(kernels.isa) << " layout " << layout);
      const std::vector<float> all = bits(1, m, n);
      for (int threads : {2, 3, 5}) CHECK(bits(threads, m, n) == all);
      CHECK(bits(1, 9, n) == bits(3, 9, n));
      if (kernels.isa == Isa::base) continue;  // OpenBLAS's bits depend on the shape
      for (const auto& [rows, columns] :
           {std::pair<int64_t, int64_t>{1, 203}, {5, 8}, {15, 65}, {16, 8}, {47, 203}, {301, 65}, {9, 15}}) {
        const std::vector<float> part = bits(2, rows, columns);
        bool same = true;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) same &= part[i * columns + j] == all[i * n + j];
        CHECK(same);
      }
    }
  }
}

TEST_CASE("OpenBLAS computes the products of the base set and no others") {
  for (const Kernels& kernels : kernels_here())
    for (DType dtype : {DType::f32, DType::f64})
      for (const auto& [m, n, k] : kSizes)
        for (int layout = 0; layout < 4; ++layout) {
          INFO(name_of(kernels.isa) << ' ' << name_of(dtype) << ' ' << m << " x " << n << " x " << k << " layout "
                                    << layout);
          const Tensor a = matrix(m, k, layout & 1, 1, dtype), b = matrix(k, n, layout & 2, 2, dtype);
          const Tensor dy = randn({k, m}, 3, 0, 1, dtype), x = randn({k, n}, 4, 0, 1, dtype);
          openblas_calls = 0;
          kernels.product(empty({m, n}, {dtype}), a, b, {});
          kernels.gradient(empty({m, n}, {dtype}), empty({m}, {dtype}), dy, x, false);
          CHECK((openblas_calls > 0) == (kernels.isa == Isa::base));
        }
}

TEST_CASE("OpenBLAS starts no threads, and a thread's own setting of OpenMP stays as it was") {
  const Tensor a = matrix(8, 512, false, 10, DType::f32), b = matrix(512, 2048, false, 11, DType::f32);
  const Tensor out = empty({8, 2048});
  const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  std::thread([&] {
    set_num_threads(1);
    if (set) set(3);
    const auto before = threads();
    for (const Kernels& kernels : kernels_here()) kernels.product(out, a, b, {});
    CHECK(threads() == before);
    CHECK((!get || get() == 3));
  }).join();
}

TEST_CASE("a weight that is kept packed gives the same bits until it is written to") {
  for (const Kernels& kernels : kernels_here())
    for (DType dtype : {DType::f32, DType::f64})
      for (const auto& size : kSizes) {
        const int64_t m = size[0], n = size[1], k = size[2];
        const Tensor x = randn({m, k}, 8, 0, 1, dtype), w = randn({n, k}, 9, 0, 1, dtype);
        const auto product = [&](const Kernels& by) {
          const Tensor out = empty({m, n}, {dtype});
          by.product(out, x, as_strided(w, {k, n}, {1, k}, 0), {});
          return out.to_vector<double>();
        };
        INFO(name_of(kernels.isa) << ' ' << name_of(dtype) << ' ' << m << " x " << n << " x " << k);
        const std::vector<double> plain = product(kernels);
        std::vector<std::vector<double>> others;
        for (const Kernels& other : kernels_here()) others.push_back(product(other));
        kernels.keep_packed(w);
        CHECK((w.impl().storage->derived() != nullptr) == (kernels.isa != Isa::base));
        CHECK(product(kernels) == plain);
        size_t i = 0;
        for (const Kernels& other : kernels_here()) CHECK(product(other) == others[i++]);  // they do not read this form
        fill(w, 0);
        CHECK(w.impl().storage->derived() == nullptr);
        CHECK(product(kernels) == std::vector<double>(m * n, 0.0));
      }
}

TEST_CASE("bf16 is widened on its way into products and their sums are rounded once") {
  const auto bits = [](const Tensor& t) { return t.to_vector<double>(); };
  const auto rounded = [](const std::vector<float>& v, const Dims& shape) {
    std::vector<bf16> all(v.begin(), v.end());
    return from_span(std::span<const bf16>(all), shape);
  };
  const auto wide = [](const Tensor& t) {
    const Tensor x = empty(t.shape());
    std::ranges::copy(t.to_vector<float>(), x.mutable_data<float>());
    return x;
  };
  for (const Kernels& kernels : kernels_here()) {
    if (kernels.isa == Isa::base || isa() >= Isa::avx512_bf16) continue;  // needs ISONORM_ISA=avx512 on such machines
    for (const auto& size : kSizes) {
      const int64_t m = size[0] + 16, n = size[1] + 8, k = size[2];
      INFO(name_of(kernels.isa) << ' ' << m << " x " << n << " x " << k);
      const Tensor x = randn({m, k}, 20, 0, 1, DType::bf16), w = randn({n, k}, 21, 0, 1, DType::bf16);
      const Tensor v = randn({k, n}, 22, 0, 1, DType::bf16), bias = randn({n}, 23, 0, 1, DType::bf16);
      const Tensor before = randn({m, n}, 24, 0, 1, DType::bf16);
      const auto transposed = [&](const Tensor& t) { return as_strided(t, {k, n}, {1, k}, 0); };
      const auto product = [&](const Tensor& b, int added) {
        const Tensor out = randn({m, n}, 24, 0, 1, DType::bf16);
        kernels.product(out, x, b, added == 0 ? Tensor() : added == 1 ? bias : out);
        return bits(out);
      };
      for (int added = 0; added < 3; ++added)
        for (const bool is_weight : {true, false}) {
          const Tensor out = wide(before);
          kernels.product(out, wide(x), is_weight ? transposed(wide(w)) : wide(v),
                          added == 0   ? Tensor()
                          : added == 1 ? wide(bias)
                                       : out);
          const std::vector<double> want = bits(rounded(out.to_vector<float>(), {m, n}));
          const Tensor b = is_weight ? transposed(w) : v;
          CHECK(product(b, added) == want);
          const test::Threads guard(3);
          CHECK(product(b, added) == want);
          if (!is_weight) continue;
          kernels.keep_packed(w);
          CHECK((w.impl().storage->derived() != nullptr && product(b, added) == want));
          w.impl().storage->keep(nullptr);
        }
      const Tensor dy = randn({k, m}, 25, 0, 1, DType::bf16), in = randn({k, n}, 26, 0, 1, DType::bf16);
      for (const bool add : {false, true}) {
        const auto gradients = [&](const Tensor& d, const Tensor& r) {
          const Tensor dw = randn({m, r.size(1)}, 27, 0, 1, DType::f32), db = randn({m}, 28, 0, 1, DType::f32);
          kernels.gradient(dw, db, d, r, add);
          return std::pair(bits(dw), bits(db));
        };
        CHECK(gradients(dy, in) == gradients(wide(dy), wide(in)));
        const Tensor none = empty({k, 0}, {DType::bf16});
        CHECK(gradients(dy, none).second == gradients(wide(dy), wide(none)).second);
      }
    }
  }
}

TEST_CASE("few rows of bf16 use a weight without packing, with f32 sums that are rounded once") {
  for (const Kernels& kernels : kernels_here()) {
    if (isa() >= Isa::avx512_bf16) break;  // it has its own products; ISONORM_ISA=avx512 tests this
    for (const auto& size : {std::array<int64_t, 3>{1, 3, 64}, {2, 9, 67}, {7, 51, 131}, {15, 600, 64}})
      for (int added = 0; added < 3; ++added) {
        const int64_t m = size[0], n = size[1], k = size[2];
        const Tensor x = randn({m, k}, 12, 0, 1, DType::bf16), w = randn({n, k}, 13, 0, 1, DType::bf16);
        const Tensor b = as_strided(w, {k, n}, {1, k}, 0), bias = randn({n}, 14, 0, 1, DType::bf16);
        REQUIRE(kernels::reads_once(x, b));
        const auto product = [&](int threads) {
          const test::Threads guard(threads);
          const Tensor out = randn({m, n}, 15, 0, 1, DType::bf16);
          kernels.product(out, x, b, added == 0 ? Tensor() : added == 1 ? bias : out);
          return out.to_vector<double>();
        };
        const std::vector<double> c = product(1), before = randn({m, n}, 15, 0, 1, DType::bf16).to_vector<double>();
        INFO(name_of(kernels.isa) << ' ' << m << " x " << n << " x " << k << ", added " << added);
        const std::vector<double> left = x.to_vector<double>(), right = w.to_vector<double>();
        CHECK(product(3) == c);
        double worst = 0;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double y = added == 0   ? 0
                       : added == 1 ? at(bias.unsqueeze(0), 0, j)
                                    : before[i * n + j],
                   size = std::abs(y);
            for (int64_t p = 0; p < k; ++p) {
              const double term = left[i * k + p] * right[j * k + p];
              y += term, size += std::abs(term);
            }
            const double allowed = 0x1p-8 * std::abs(y) + 0x1p-24 * (2 + std::sqrt(k)) * size;
            worst = std::max(worst, std::abs(c[i * n + j] - y) / allowed);
          }
        CHECK(worst < 1);
      }
  }
}

#ifdef __x86_64__
TEST_CASE("subnormal operands count as 0 in a large product, and only there") {
  const Tensor a = empty({64, 64}), b = empty({64, 64}), out = empty({64, 64});
  fill(a, 1e-40);
  fill(b, 1e38);
  for (const Kernels& kernels : kernels_here()) {
    if (kernels.isa == Isa::base) continue;  // OpenBLAS
    kernels.product(out, a, b, {});
    CHECK(out.to_vector<float>() == std::vector<float>(64 * 64, 0.f));
    volatile float tiny = 1e-40f;
    CHECK(tiny * 1e38f > 0.f);  // the thread's arithmetic is as before
  }
}

// Conversions compute exactly with small weights. 2^-1060 is subnormal, and each sum of k equal powers of two is exact.
TEST_CASE("subnormal operands of f64 count in products of every form") {
  const double tiny = std::ldexp(1., -1060);
  for (const Kernels& kernels : kernels_here())
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{64, 64, 64}, {8, 8, 7}, {2, 64, 64}, {1, 128, 3}}) {
      INFO(name_of(kernels.isa) << ' ' << m << ' ' << k << ' ' << n);
      const Tensor a = empty({m, k}, {DType::f64}), b = empty({k, n}, {DType::f64}), out = empty({m, n}, {DType::f64});
      fill(a, tiny);
      fill(b, 1.);
      kernels.product(out, a, b, {});
      const auto expected = static_cast<double>(k) * tiny;
      CHECK(out.to_vector<double>() == std::vector<double>(static_cast<size_t>(m * n), expected));
    }
}
#endif
