// Products of bf16 by AVX512_BF16 and AMX, against plain code with the semantics of their instructions, and against
// f64. Tests of AMX run its plain twin, and AMX itself with ISONORM_ISA=amx_bf16.
#include <cmath>
#include <limits>

#include "core/cpu/bf16/products.h"
#include "core/kernels/matmul.h"
#include "core/system/parallel.h"
#include "tests/support/catch.h"
#include "tests/support/random.h"
#include "tests/support/threads.h"

using namespace isonorm;

namespace {

// The units that can multiply on this machine; none if ISONORM_ISA or the chip has no AVX512_BF16.
std::vector<Multiplier> multipliers() {
  if (isa() == Isa::amx_bf16) return {Multiplier::registers, Multiplier::plain_tiles, Multiplier::tiles};
  if (isa() == Isa::avx512_bf16) return {Multiplier::registers, Multiplier::plain_tiles};
  return {};
}
const char* name_of(Multiplier by) {
  return by == Multiplier::registers ? " by registers" : by == Multiplier::tiles ? " by tiles" : " by plain tiles";
}

// A random matrix [rows, columns]; if `transposed`, as a view of a buffer [columns, rows].
Tensor matrix(int64_t rows, int64_t columns, bool transposed, uint64_t seed) {
  const Tensor x = test::randn({transposed ? columns : rows, transposed ? rows : columns}, seed, 0, 1, DType::bf16);
  return transposed ? as_strided(x, {rows, columns}, {1, rows}, 0) : x;
}
float at(const Tensor& t, int64_t i, int64_t j) { return t.data<bf16>()[i * t.strides()[0] + j * t.strides()[1]]; }

float flushed(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.f, x) : x; }

// The chain of `vdpbf16ps` over a row and a column: the second product of each pair first, each sum rounded to f32.
float chain(const float* x, const float* y, int64_t k) {
  float sum = 0;
  for (int64_t p = 0; p < k; p += 2) {
    if (p + 1 < k) sum = flushed(std::fma(flushed(x[p + 1]), flushed(y[p + 1]), sum));
    sum = flushed(std::fma(flushed(x[p]), flushed(y[p]), sum));
  }
  return sum;
}

// The chain of tiles: for every sixteen pairs, one chain for the first elements of the pairs and one for the second.
float chain_of_tiles(const float* x, const float* y, int64_t k) {
  float sum = 0;
  for (int64_t p = 0; p < k; p += 32) {
    float parts[2] = {};
    for (int64_t i = p; i < std::min(k, p + 32); ++i)
      parts[i % 2] = flushed(std::fma(flushed(x[i]), flushed(y[i]), parts[i % 2]));
    sum = flushed(sum + flushed(parts[0] + parts[1]));
  }
  return sum;
}

// True if each entry of c, an f32 or bf16 result, is base + a b. If the depth is one block, the bits must be equal.
// Otherwise the error must be within the roundings of the sums, which add up like a random walk, and of the result.
bool agrees(const Tensor& c, const Tensor& a, const Tensor& b, const std::vector<float>& base, Multiplier by) {
  const int64_t m = c.size(0), n = c.size(1), k = a.size(1);
  const bool narrow = c.dtype() == DType::bf16;
  const std::vector<float> got = c.to_vector<float>(), rows = a.to_vector<float>();
  const std::vector<float> columns = b.transpose().to_vector<float>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float y = got[i * n + j], from = base[i * n + j], *x = &rows[i * k], *z = &columns[j * k];
      if (k <= 512) {
        const float whole = from + (by == Multiplier::registers ? chain(x, z, k) : chain_of_tiles(x, z, k)),
                    want = narrow ? static_cast<float>(bf16(whole)) : whole;
        if (y != want && !(std::isnan(y) && std::isnan(want))) return false;
        continue;
      }
      double sum = from, size = std::abs(from);
      for (int64_t p = 0; p < k; ++p) {
        const double term = static_cast<double>(x[p]) * z[p];
        sum += term, size += std::abs(term);
      }
      const double sums = 4 * 0x1p-23 * (2 + std::sqrt(static_cast<double>(k))) * size;
      if (!(std::abs(y - sum) <= sums + (narrow ? 0x1p-8 * (std::abs(sum) + sums) : 0))) return false;
    }
  return true;
}

// Sizes around the blocks: 6 and 12 rows, registers of 16 columns, panels of 64, strips of 48, odd depths, depths of
// 1024.
const int64_t kSizes[][3] = {{1, 1, 1},     {16, 8, 2},     {17, 9, 3},     {5, 16, 7},
                             {6, 17, 8},    {7, 33, 9},     {13, 48, 130},  {49, 63, 31},
                             {97, 65, 512}, {23, 130, 511}, {19, 16, 1300}, {30, 70, 2051},
                             {130, 200, 5}, {9, 700, 130},  {700, 5, 1026}, {2, 3, 4}};

}  // namespace

TEST_CASE("bf16 products of every size and layout have the bits of plain code") {
  for (Multiplier by : multipliers()) {
    INFO(name_of(by));
    for (const auto& [m, n, k] : kSizes)
      for (int layout = 0; layout < 4; ++layout) {
        INFO(m << " x " << n << " x " << k << " layout " << layout);
        const Tensor a = matrix(m, k, layout & 1, 1), b = matrix(k, n, layout & 2, 2);
        const Tensor bias = test::randn({n}, 3, 0, 1, DType::bf16), out = empty({m, n}, {DType::bf16});
        const auto run = [&](const Tensor& from) { kernels::cpu::matmul_bf16(out, a, b, from, by); };
        fill(out, NAN);  // its old contents are not read
        run({});
        CHECK(agrees(out, a, b, std::vector<float>(m * n, 0.f), by));
        fill(out, NAN);
        run(bias);
        std::vector<float> base;
        for (int64_t i = 0; i < m * n; ++i) base.push_back(bias.data<bf16>()[i % n]);
        CHECK(agrees(out, a, b, base, by));
        base = out.to_vector<float>();
        run(out);
        CHECK(agrees(out, a, b, base, by));
      }
  }
}

TEST_CASE("weight gradients of bf16 have the bits of plain code") {
  for (Multiplier by : multipliers()) {
    INFO(name_of(by));
    for (const auto& [m, n, rows] : kSizes)
      for (DType dtype : {DType::f32, DType::bf16}) {
        INFO(m << " x " << n << ", rows " << rows << ' ' << name_of(dtype));
        const Tensor dy = matrix(rows, m, false, 4), x = matrix(rows, n, false, 5);
        const Tensor dw = empty({m, n}, {dtype}), db = empty({m}, {dtype}), ones = empty({rows, 1}, {DType::bf16});
        const Tensor transposed = as_strided(dy, {m, rows}, {1, m}, 0), column = as_strided(db, {m, 1}, {1, 1}, 0);
        fill(ones, 1), fill(dw, NAN), fill(db, NAN);
        kernels::cpu::weight_gradient_bf16(dw, db, dy, x, false, by);
        CHECK(agrees(dw, transposed, x, std::vector<float>(m * n, 0.f), by));
        CHECK(agrees(column, transposed, ones, std::vector<float>(m, 0.f), Multiplier::registers));
        const std::vector<float> w = dw.to_vector<float>(), b = db.to_vector<float>();
        kernels::cpu::weight_gradient_bf16(dw, db, dy, x, true, by);
        CHECK(agrees(dw, transposed, x, w, by));
        CHECK(agrees(column, transposed, ones, b, Multiplier::registers));
        kernels::cpu::weight_gradient_bf16({}, db, dy, x, false, by);  // as for a frozen weight
        CHECK(db.to_vector<float>() == b);
      }
  }
}

TEST_CASE("an element of a bf16 product has the same bits for any number of threads and any neighbours") {
  for (Multiplier by : multipliers()) {
    INFO(name_of(by));
    const int64_t m = 301, n = 203;
    for (int64_t k : {700, 1401})
      for (int layout = 0; layout < 4; ++layout) {
        const Tensor a = matrix(m, k, layout & 1, 6), b = matrix(k, n, layout & 2, 7);
        const auto bits = [&](int threads, int64_t rows, int64_t columns) {
          const test::Threads guard(threads);
          const Tensor out = empty({rows, columns}, {DType::bf16});
          kernels::cpu::matmul_bf16(out, as_strided(a, {rows, k}, a.strides(), 0),
                                    as_strided(b, {k, columns}, b.strides(), 0), {}, by);
          return out.to_vector<float>();
        };
        INFO(k << " layout " << layout);
        const std::vector<float> all = bits(1, m, n);
        for (int threads : {2, 3, 5}) CHECK((bits(threads, m, n) == all));  // not printed
        for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {16, 8}, {47, 203}, {301, 65}}) {
          const std::vector<float> part = bits(2, rows, columns);
          bool same = true;
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) same &= part[i * columns + j] == all[i * n + j];
          CHECK(same);
        }
      }
  }
}

TEST_CASE("a bf16 weight that is kept packed gives the same bits for any rows until it is written to") {
  if (multipliers().empty()) return;
  for (const auto& size : {std::pair<int64_t, int64_t>{1, 2}, {65, 700}, {203, 2050}, {64, 9}}) {
    const int64_t n = size.first, k = size.second;
    const Tensor w = matrix(n, k, false, 7), b = as_strided(w, {k, n}, {1, k}, 0), all = matrix(40, k, false, 6);
    const auto bits = [&](int64_t rows) {
      const Tensor out = empty({rows, n}, {DType::bf16});
      kernels::matmul.on(kCpu, out, as_strided(all, {rows, k}, {k, 1}, 0), b, {});
      return out.to_vector<float>();
    };
    const std::vector<float> one = bits(1), many = bits(40);
    CHECK((std::vector<float>(many.begin(), many.begin() + n) == one));
    kernels::keep_packed.on(kCpu, w);
    INFO(n << " x " << k);
    CHECK((w.impl().storage->derived() != nullptr) == (k % 2 == 0));
    CHECK((bits(1) == one && bits(40) == many));
    fill(w, 0);
    CHECK(w.impl().storage->derived() == nullptr);
    CHECK((bits(1) == std::vector<float>(n, 0.f)));
  }
}

TEST_CASE("NaN and infinity of a bf16 product stay in their rows and columns") {
  for (Multiplier by : multipliers()) {
    INFO(name_of(by));
    const int64_t m = 20, n = 40;
    for (int64_t k : {8, 9})
      for (int layout = 0; layout < 4; ++layout) {
        const Tensor a = matrix(m, k, layout & 1, 8), b = matrix(k, n, layout & 2, 9),
                     out = empty({m, n}, {DType::bf16});
        const auto set = [](const Tensor& t, int64_t i, int64_t j, float v) {
          t.mutable_data<bf16>()[i * t.strides()[0] + j * t.strides()[1]] = v;
        };
        set(a, 3, 0, NAN), set(a, 7, k - 1, INFINITY), set(b, 2, 5, -INFINITY);
        set(b, k - 1, 11, 0);  // infinity times 0
        kernels::cpu::matmul_bf16(out, a, b, {}, by);
        INFO(k << " layout " << layout);
        CHECK(agrees(out, a, b, std::vector<float>(m * n, 0.f), by));
        const auto c = [&](int64_t i, int64_t j) { return at(out, i, j); };
        CHECK((std::isnan(c(3, 0)) && std::isinf(c(7, 0)) && std::isnan(c(7, 11)) && std::isinf(c(0, 5))));
        CHECK((std::isfinite(c(2, 0)) && std::isfinite(c(4, 0)) && std::isfinite(c(6, 11)) && std::isfinite(c(8, 4))));
      }
  }
}

TEST_CASE("subnormal numbers count as 0 in a bf16 product") {
  for (Multiplier by : multipliers()) {
    INFO(name_of(by));
    const Tensor a = empty({3, 4}, {DType::bf16}), b = empty({4, 5}, {DType::bf16}), out = empty({3, 5}, {DType::bf16});
    fill(a, 1e-40), fill(b, 1e38);
    kernels::cpu::matmul_bf16(out, a, b, {}, by);
    CHECK(out.to_vector<float>() == std::vector<float>(15, 0.f));
    fill(a, 1e-20), fill(b, 1e-20);  // their product is subnormal
    kernels::cpu::matmul_bf16(out, a, b, {}, by);
    CHECK(out.to_vector<float>() == std::vector<float>(15, 0.f));
  }
}

TEST_CASE("bf16 products of no depth, of no rows and of batches") {
  for (Multiplier by : multipliers()) {
    INFO(name_of(by));
    const Tensor bias = test::randn({3}, 10, 0, 1, DType::bf16), out = empty({2, 3}, {DType::bf16});
    kernels::matmul.on(kCpu, out, empty({2, 0}, {DType::bf16}), empty({0, 3}, {DType::bf16}), bias);
    for (int64_t i = 0; i < 6; ++i) CHECK(at(out, i / 3, i % 3) == at(bias.unsqueeze(0), 0, i % 3));
    const Tensor dw = empty({2, 3}), db = empty({2});
    fill(dw, 5), fill(db, 6);
    const Tensor dy = empty({0, 2}, {DType::bf16}), x = empty({0, 3}, {DType::bf16});
    kernels::cpu::weight_gradient_bf16(dw, db, dy, x, true, by);
    CHECK((dw.to_vector<float>() == std::vector<float>(6, 5.f) && db.to_vector<float>() == std::vector<float>(2, 6.f)));
    kernels::cpu::weight_gradient_bf16(dw, db, dy, x, false, by);
    CHECK((dw.to_vector<float>() == std::vector<float>(6, 0.f) && db.to_vector<float>() == std::vector<float>(2, 0.f)));

    const int64_t count = 7, m = 5, n = 6, k = 9;  // all products share one b
    const Tensor a = test::randn({count, m, k}, 11, 0, 1, DType::bf16), b = matrix(k, n, false, 12);
    const Tensor all = empty({count, m, n}, {DType::bf16});
    kernels::cpu::matmul_bf16(all, a, as_strided(b, {count, k, n}, {0, n, 1}, 0), {}, by);
    for (int64_t i = 0; i < count; ++i)
      CHECK(agrees(as_strided(all, {m, n}, {n, 1}, i * m * n).clone(), as_strided(a, {m, k}, {k, 1}, i * m * k), b,
                   std::vector<float>(m * n, 0.f), by));
  }
}
