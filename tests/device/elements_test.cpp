// Elementwise kernels on a device compared with the CPU bit by bit: all memory layouts of a tensor, and the memory
// around it.
#include <limits>

#include "core/formulas/pointwise.h"
#include "core/kernels/copy.h"
#include "core/kernels/create.h"
#include "core/kernels/pointwise.h"
#include "core/kernels/random.h"
#include "tests/support/device.h"
#include "tests/support/emulation.h"
#include "tests/support/ops.h"

using namespace isonorm;
using test::kCuda;

namespace {

constexpr DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8};
constexpr DType kFloating[] = {DType::f32, DType::f64, DType::bf16};

// n numbers whose whole parts are exact in every dtype.
Tensor numbers(int64_t n, DType dtype, int64_t seed) {
  std::vector<double> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    v[static_cast<size_t>(i)] = static_cast<double>((i * 37 + seed) % 251) + 0.375 * static_cast<double>(i % 3);
  return from_vector(v, {n}).to(dtype);
}

struct Place {
  Dims strides;
  int64_t offset = 0;
};

// A view at the given place inside a larger tensor, on the CPU and on the device.
struct Both {
  Tensor here, there;            // the whole tensor
  Tensor view_here, view_there;  // the view
};
Both both(const Dims& shape, const Place& place, DType dtype, int64_t seed) {
  int64_t room = place.offset + 19;
  for (int d = 0; d < shape.rank; ++d) room += (shape[d] - 1) * std::abs(place.strides[d]);
  const Tensor here = numbers(room, dtype, seed), there = to(here, kCuda);
  return {here, there, as_strided(here, shape, place.strides, place.offset),
          as_strided(there, shape, place.strides, place.offset)};
}

// Runs call(device, view) on the CPU with view_here and on the device with view_there. All of `out` must have the same
// bits on both, including the memory around the view.
template <class Call> void check_both(const Both& out, Call call) {
  call(kCpu, &Both::view_here);
  call(kCuda, &Both::view_there);
  CHECK(same_bytes(out.there, out.here));
}

struct Pair {
  const char* name;
  Dims shape;
  Place dst, src;
};
const Pair kPairs[] = {
    {"packs", {1003}, {{1}, 16}, {{1}, 32}},
    {"at no multiple of a pack", {515}, {{1}, 1}, {{1}, 3}},
    {"one element", {}, {{}, 5}, {{}, 2}},
    {"rows of packs", {5, 16}, {{16, 1}, 16}, {{48, 1}, 16}},
    {"rows that begin anywhere", {5, 16}, {{16, 1}, 16}, {{33, 1}, 16}},
    {"rows of a broken pack", {6, 13}, {{32, 1}, 0}, {{16, 1}, 0}},
    {"a broadcast row", {7, 32}, {{32, 1}, 0}, {{0, 1}, 16}},
    {"a broadcast column", {7, 32}, {{32, 1}, 0}, {{3, 0}, 1}},
    {"every second element", {40}, {{1}, 0}, {{2}, 0}},
    {"backwards", {9, 24}, {{-24, -1}, 8 * 24 + 23}, {{24, 1}, 0}},
    {"rows backwards", {9, 32}, {{-32, 1}, 8 * 32}, {{32, 1}, 0}},
    {"transposed source", {3, 70, 45}, {{3150, 45, 1}, 0}, {{3150, 1, 70}, 1}},
    {"transposed destination", {3, 70, 45}, {{3150, 1, 70}, 1}, {{3150, 45, 1}, 0}},
    {"turned inside out", {2, 20, 3, 33}, {{1980, 99, 33, 1}, 0}, {{1980, 1, 20, 60}, 0}},
    {"transposed, too short for tiles", {7, 40}, {{40, 1}, 0}, {{1, 7}, 0}},
    {"transposed, both alike", {20, 40}, {{1, 20}, 0}, {{1, 20}, 0}},
    {"eight dimensions",
     {2, 3, 2, 2, 3, 2, 2, 5},
     {{720, 240, 120, 60, 20, 10, 5, 1}, 0},
     {{1, 2, 6, 12, 24, 72, 144, 288}, 0}},
};

}  // namespace

TEST_CASE("copies between all dtypes, however they lie, have the bits of the CPU's in any order of threads") {
  test::in_orders(4, [](uint64_t) {
    for (const Pair& p : kPairs)
      for (DType to_type : kAll)
        for (DType from_type : kAll) {
          INFO(text(p.name, ", ", from_type, " to ", to_type));
          const Both dst = both(p.shape, p.dst, to_type, 3), src = both(p.shape, p.src, from_type, 11);
          check_both(dst, [&](Device, auto v) { kernels::copy(dst.*v, src.*v); });
        }
  });
}

TEST_CASE("integers become bf16 by one rounding") {
  std::vector<int64_t> v{0, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  for (int e = 8; e < 63; ++e)
    for (int64_t ninth : {0, 1, 2, 3})  // in units of half a bf16 step: 2^(e - 8)
      for (int64_t rest : {-2, -1, 0, 1, 2})
        for (int64_t sign : {-1, 1}) v.push_back(sign * ((int64_t{1} << e) + ninth * (int64_t{1} << (e - 8)) + rest));
  const Tensor x = from_vector(v, {static_cast<int64_t>(v.size())}), y = x.to(DType::bf16);
  for (size_t i = 0; i < v.size(); ++i) {
    INFO(v[i]);
    CHECK(y.data<bf16>()[i].bits == bf16(static_cast<long double>(v[i])).bits);
  }
  CHECK(same_bytes(to(x, kCuda).to(DType::bf16), y));
}

TEST_CASE("pointwise results, however operands lie, have the bits of the CPU's") {
  for (const Pair& p : kPairs) {
    for (DType dtype : kAll) {
      INFO(text(p.name, ", ", dtype));
      const Both a = both(p.shape, p.src, dtype, 7), b = both(p.shape, p.dst, dtype, 8);
      const Both less = both(p.shape, p.dst, DType::u8, 1), chosen = both(p.shape, p.dst, dtype, 2);
      constexpr int lt = ops::index_in<ops::Lt>(ops::Comparison{});
      check_both(less, [&](Device d, auto v) { kernels::compare.on(d, lt, less.*v, a.*v, b.*v); });
      check_both(chosen, [&](Device d, auto v) { kernels::where.on(d, chosen.*v, less.*v, a.*v, b.*v); });
    }
    for (DType dtype : kFloating) {
      INFO(text(p.name, ", ", dtype));
      // The result overwrites an operand, or the gradient.
      const Both a = both(p.shape, p.dst, dtype, 7), b = both(p.shape, p.src, dtype, 8);
      constexpr int sub = ops::index_in<ops::Sub>(ops::Binary{}), square = ops::index_in<ops::Square>(ops::Unary{});
      check_both(a, [&](Device d, auto v) { kernels::binary.on(d, sub, a.*v, a.*v, b.*v); });
      check_both(a, [&](Device d, auto v) { kernels::unary_backward.on(d, square, a.*v, a.*v, b.*v, {}); });
      constexpr int plus = ops::index_in<ops::AddNumber>(ops::Unary{});
      check_both(a, [&](Device d, auto v) { kernels::unary.on(d, plus, a.*v, b.*v, {{2, 0}}); });
    }
  }
}

TEST_CASE("random fills and dropout have the bits of the CPU's, for any length and address") {
  const Generator state{.seed = 0x123456789abc, .offset = 0xfffffff0};  // counters on both sides of 2^32
  const auto check_fill = [&](const char* name, DType dtype, auto fill) {
    for (int64_t n : {1, 63, 64, 65, 127, 128, 129, 191, 193, 256, 1000, 5003})
      for (int64_t offset : {0, 1, 16}) {
        INFO(text(name, " ", dtype, ", ", n, " from ", offset));
        const Both out = both({n}, {{1}, offset}, dtype, 1);
        check_both(out, [&](Device d, auto v) { fill(d, out.*v); });
      }
  };
  for (DType t : kFloating) {
    check_fill("uniform", t, [&](Device d, const Tensor& x) { kernels::uniform.on(d, x, -1.25, 3.5, state); });
    check_fill("normal", t, [&](Device d, const Tensor& x) { kernels::normal.on(d, x, 0.5, 2, state); });
    check_fill("exponential", t, [&](Device d, const Tensor& x) { kernels::exponential.on(d, x, state); });
    check_fill("truncated", t,
               [&](Device d, const Tensor& x) { kernels::truncated_normal.on(d, x, 0, 1, 1.5, 2, state); });
    check_fill("dropout", t, [&](Device d, const Tensor& x) { kernels::dropout.on(d, x, x, 0.3, state); });
  }
  for (DType t : kAll)
    check_fill("bernoulli", t, [&](Device d, const Tensor& x) { kernels::bernoulli.on(d, x, 0.3, state); });
  check_fill("integers", DType::i64,
             [&](Device d, const Tensor& x) { kernels::random_integers.on(d, x, -5, 1000, state); });
  check_fill("permutation", DType::i64,
             [&](Device d, const Tensor& x) { kernels::random_permutation.on(d, x, state); });
}

TEST_CASE("ramps and triangles have the bits of the CPU's, in every dtype and at every address") {
  for (DType dtype : kAll)
    for (int64_t offset : {0, 1, 16}) {
      INFO(text(dtype, " from ", offset));
      for (int64_t stride : {1, 3, -2}) {
        const Both out = both({61}, {{stride}, offset + (stride < 0 ? 120 : 0)}, dtype, 1);
        check_both(out, [&](Device d, auto v) { kernels::ramp.on(d, out.*v, 0.1, 1.7); });
      }
      for (bool lower : {true, false})
        for (int64_t diagonal : {-2, 0, 3}) {
          const Place place{{35, 7, 1}, offset};
          const Both x = both({4, 5, 7}, place, dtype, 1), out = both({4, 5, 7}, place, dtype, 2);
          check_both(out, [&](Device d, auto v) { kernels::triangle.on(d, out.*v, x.*v, diagonal, lower); });
        }
    }
}
