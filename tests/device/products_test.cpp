// The slots of products on a device, for cases that no row of tests/op_cases reaches: edges of tiles, unaligned views,
// large tiles, sums over many rows that are added to existing values. Compared with the CPU in f64 on the same numbers.
#include "core/kernels/matmul.h"
#include "gpu/recorder.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

const DType kFloating[] = {DType::f32, DType::f64, DType::bf16};

// A matrix on the device, column-major if `turned`. It begins `aside` elements after the start of its storage, and the
// pitch of its rows (columns) is larger by `aside`. aside < 0: it begins at the start, with a pitch rounded up to a
// multiple of 8.
Tensor draw(int64_t rows, int64_t columns, DType dtype, bool turned, int64_t aside, Generator& g) {
  const int64_t outer = turned ? columns : rows, inner = turned ? rows : columns, offset = std::max<int64_t>(0, aside);
  const int64_t pitch = aside < 0 ? (inner + 8) / 8 * 8 : inner + aside;
  const Tensor all = to(randn({(outer + 1) * pitch}, {dtype}, g), kCuda);
  return turned ? as_strided(all, {rows, columns}, {1, pitch}, offset)
                : as_strided(all, {rows, columns}, {pitch, 1}, offset);
}
Tensor host(const Tensor& x) { return detached::to(detached::contiguous(to(x, kCpu)), DType::f64); }

// For a sum of k products of numbers of size 1, relative to the largest; rounding of the operands does not count.
double tolerance(DType sums, DType stored, int64_t k) {
  return 4 * epsilon(acc_dtype(sums)) * std::sqrt(static_cast<double>(k)) + epsilon(stored);
}

}  // namespace

TEST_CASE("products at the edges of tiles, turned and not, aligned and not") {
  Generator g{.seed = 11};
  const int64_t sizes[][3] = {{72, 80, 136}, {65, 7, 67}, {1, 130, 17}, {129, 66, 200}};
  for (const DType dtype : kFloating)
    for (const auto& [m, n, k] : sizes)
      for (int form = 0; form < 4; ++form)
        for (const int64_t aside : {0, 8, 1, -1}) {
          const Tensor a = draw(m, k, dtype, form & 1, aside, g), b = draw(k, n, dtype, form & 2, aside, g);
          const Tensor bias = to(randn({n}, {dtype}, g), kCuda), out = empty({m, n}, {dtype, kCuda});
          const Tensor expected = empty({m, n}, {DType::f64});
          kernels::matmul.on(kCpu, expected, host(a), host(b), host(bias));
          kernels::matmul.on(kCuda, out, a, b, bias);
          INFO(name_of(dtype) << ", " << m << " x " << n << " x " << k << ", form " << form << ", " << aside);
          check_close(host(out), expected, tolerance(dtype, dtype, k));
          if (form) continue;
          kernels::matmul.on(kCpu, expected, host(a), host(b), expected);
          kernels::matmul.on(kCuda, out, a, b, out);
          check_close(host(out), expected, 3 * tolerance(dtype, dtype, k));
        }
}

// cuBLASLt chooses an algorithm for each shape, so with it the two agree only up to rounding.
TEST_CASE("a product has the bits that it has in a batch, which takes larger tiles") {
  Generator g{.seed = 12};
  constexpr int64_t kBatch = 128, m = 100, n = 72, k = 88;
  for (const DType dtype : kFloating) {
    const Tensor a = to(randn({kBatch, m, k}, {dtype}, g), kCuda), b = to(randn({k, n}, {dtype}, g), kCuda);
    const Tensor out = empty({kBatch, m, n}, {dtype, kCuda}), single = empty({m, n}, {dtype, kCuda});
    const gpu::Recorder recorder;
    kernels::matmul.on(kCuda, out, a, detached::expand(b, {kBatch, k, n}), Tensor());
    const bool ours = recorder.all().back().name != "product.cublaslt";
    for (const int64_t i : {int64_t{0}, int64_t{77}, kBatch - 1}) {
      const auto of = [&](const Tensor& t) { return detached::reshape(detached::narrow(t, 0, i, 1), {m, t.size(2)}); };
      kernels::matmul.on(kCuda, single, of(a), b, Tensor());
      check_close(host(single), host(of(out)), ours ? 0 : 2 * tolerance(dtype, dtype, k));
    }
  }
}

TEST_CASE("gradients of weights and biases over many rows, stored and added") {
  Generator g{.seed = 13};
  constexpr int64_t rows = 1100, n = 24;
  const auto each = [&](DType dtype, DType stored, int64_t m) {
    INFO(name_of(dtype) << " to " << name_of(stored) << ", " << m << " columns");
    const Tensor dy = to(randn({rows, m}, {dtype}, g), kCuda), x = to(randn({rows, n}, {dtype}, g), kCuda);
    const Tensor dw = empty({m, n}, {stored, kCuda}), db = empty({m}, {stored, kCuda});
    const Tensor dw64 = empty({m, n}, {DType::f64}), db64 = empty({m}, {DType::f64});
    for (const bool add : {false, true}) {
      kernels::weight_gradient.on(kCpu, dw64, db64, host(dy), host(x), add);
      kernels::weight_gradient.on(kCuda, dw, db, dy, x, add);
      INFO((add ? "added" : "stored"));
      check_close(host(dw), dw64, 2 * tolerance(dtype, stored, rows));
      check_close(host(db), db64, 2 * tolerance(dtype, stored, rows));
    }
    kernels::weight_gradient.on(kCuda, Tensor(), db, dy, x, false);
    kernels::weight_gradient.on(kCpu, Tensor(), db64, host(dy), host(x), false);
    check_close(host(db), db64, tolerance(dtype, stored, rows));
  };
  for (const DType dtype : kFloating)
    for (const DType stored : {dtype, acc_dtype(dtype)})
      for (const int64_t m : {41, 40}) each(dtype, stored, m);  // 40: columns in packs
}

TEST_CASE("sums of columns have the bits that they have where rows are no multiple of 16 bytes") {
  Generator g{.seed = 15};
  constexpr int64_t rows = 1100, m = 264;
  for (const DType dtype : kFloating)
    for (const DType stored : {dtype, acc_dtype(dtype)}) {
      const Tensor dy = randn({rows, m}, {dtype}, g), x = to(randn({rows, 8}, {dtype}, g), kCuda);
      const auto sums_of = [&](const Tensor& t) {
        const Tensor db = empty({t.size(1)}, {stored, kCuda});
        kernels::weight_gradient.on(kCuda, Tensor(), db, to(detached::contiguous(t), kCuda), x, false);
        return to(db, kCpu);
      };
      CHECK(same_bytes(detached::narrow(sums_of(dy), 0, 0, m - 1), sums_of(detached::narrow(dy, 1, 0, m - 1))));
    }
}
