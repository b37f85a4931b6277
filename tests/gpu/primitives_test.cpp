// Cooperation of a block's threads, against the CUDA manual; the same bits with every schedule.
#include "tests/gpu/primitives.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/dtype.h"
#include "gpu/walk.cuh"
#include "tests/gpu/device_floats.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::test;
using gpu::emulated::schedule;

namespace {

std::vector<float> random_floats(size_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}

}  // namespace

TEST_CASE("sums of a block have the same bits with every seed and number of threads") {
  constexpr int kBlocks = 20;
  DeviceFloats x(256 * kBlocks), y(2 * kBlocks);
  std::vector<float> values = random_floats(256 * kBlocks), first;
  values[256 * 3 + 100] = std::numeric_limits<float>::quiet_NaN();
  for (uint64_t seed = 0; seed < 8; ++seed) {
    schedule() = {seed, seed % 2 ? 1 : 3};
    x.give(values);
    start_sums(gpu::stream_of(kGpu), y.data(), x.data(), kBlocks);
    const std::vector<float> got = y.taken();
    if (seed == 0) first = got;
    CHECK(std::memcmp(got.data(), first.data(), 8 * kBlocks) == 0);
  }
  schedule() = {};
  for (size_t b = 0; b < kBlocks; ++b) {
    double sum = 0, top = -1e30;
    for (size_t i = 0; i < 256; ++i) {
      sum += values[256 * b + i];
      top = std::max(top, double{values[256 * b + i]});
    }
    if (b == 3) {
      CHECK(std::isnan(first[b]));
      CHECK(std::isnan(first[kBlocks + b]));
    } else {
      CHECK(first[b] == Approx(sum).margin(256 * 6e-8 * 16));
      CHECK(first[kBlocks + b] == static_cast<float>(top));
    }
  }
}

TEST_CASE("a product of fragments is a product of matrices") {
  DeviceFloats a(256), b(128), c(128);
  std::vector<float> va = random_floats(256), vb = random_floats(128);
  for (float& v : va) v = bf16(v);
  for (float& v : vb) v = bf16(v);
  a.give(va);
  b.give(vb);
  start_product(gpu::stream_of(kGpu), c.data(), a.data(), b.data());
  const std::vector<float> got = c.taken();
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < 8; ++j) {
      double sum = 0, size = 0;
      for (size_t k = 0; k < 16; ++k) {
        sum += double{va[16 * i + k]} * double{vb[8 * k + j]};
        size += std::abs(double{va[16 * i + k]} * double{vb[8 * k + j]});
      }
      CHECK(std::abs(got[8 * i + j] - sum) <= 16 * 6e-8 * size);
    }
}

TEST_CASE("an iteration continues beyond 2^32 elements") {
  const Dims shape{3, int64_t{1} << 20, 5000};
  const gpu::Walk<2> walk(Loop<2>(shape, {Dims{int64_t{1} << 40, 10000, 1}, Dims{7, 0, 2}}));
  for (const auto& [a, b, c] : {std::array<int64_t, 3>{0, 1, 4999}, {2, 1048575, 4999}, {1, 7, 0}, {2, 0, 3}}) {
    int64_t at[2];
    walk.place((a * shape[1] + b) * shape[2] + c, at);
    CHECK(at[0] == (a << 40) + b * 10000 + c);
    CHECK(at[1] == 7 * a + 2 * c);
  }
}
