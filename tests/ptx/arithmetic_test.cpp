// Instructions of registers against their formulas.
#include <bit>
#include <cmath>
#include <limits>

#include "tests/ptx/handwritten.h"

using namespace isonorm::ptx;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

const std::vector<int32_t> kIntegers{
    0, 1, -1, 2, -2, 7, -7, 31, 32, 33, 1000, -1000, 65536, 0x7fffffff, -0x7fffffff - 1, 0x12345678};

// The entries of kIntegers in all pairs.
std::pair<std::vector<int32_t>, std::vector<int32_t>> pairs() {
  std::pair<std::vector<int32_t>, std::vector<int32_t>> p;
  for (const int32_t a : kIntegers)
    for (const int32_t b : kIntegers) p.first.push_back(a), p.second.push_back(b);
  return p;
}

// Compares a 32-bit instruction with the low 32 bits of `expected`.
template <class F> void check_integers(const std::string& instruction, F expected) {
  INFO(instruction);
  const auto [a, b] = pairs();
  const auto got = results<int32_t>(instruction + " %r3, %r1, %r2;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    INFO(a[i] << ", " << b[i]);
    CHECK(got[i] == static_cast<int32_t>(expected(a[i], b[i])));
  }
}

}  // namespace

TEST_CASE("ptx: fma rounds once, mul and add round twice") {
  const float x = 1 + 0x1p-12f;  // x x = 1 + 2^-11 + 2^-24
  const std::vector<float> a{x}, b{-1 - 0x1p-11f};
  CHECK(f32_results("fma.rn.f32 %f3, %f1, %f1, %f2;", a, b)[0] == 0x1p-24f);
  CHECK(f32_results("mul.f32 %f4, %f1, %f1; add.f32 %f3, %f4, %f2;", a, b)[0] == 0);
  // 1 + 1.5 2^-24 lies between 1 and 1 + 2^-23, nearer to the second
  CHECK(f32_results("fma.rn.f32 %f3, %f1, %f2, 0f3F800000;", {0x1.8p-12f}, {0x1p-12f})[0] == 1 + 0x1p-23f);
  CHECK(f32_results("fma.rz.f32 %f3, %f1, %f2, 0f3F800000;", {0x1.8p-12f}, {0x1p-12f})[0] == 1);
}

TEST_CASE("ptx: integers wrap around, high and wide products have all bits") {
  check_integers("add.s32", [](int64_t a, int64_t b) { return a + b; });
  check_integers("sub.s32", [](int64_t a, int64_t b) { return a - b; });
  check_integers("mul.lo.s32", [](int64_t a, int64_t b) { return a * b; });
  check_integers("mul.hi.s32", [](int64_t a, int64_t b) { return a * b >> 32; });
  check_integers("mul.hi.u32", [](int64_t a, int64_t b) {
    return uint64_t{static_cast<uint32_t>(a)} * static_cast<uint32_t>(b) >> 32;
  });
  check_integers("div.s32", [](int64_t a, int64_t b) { return b == 0 ? -1 : a / b; });
  check_integers("rem.s32", [](int64_t a, int64_t b) { return b == 0 ? -1 : a % b; });
  check_integers("min.s32", [](int64_t a, int64_t b) { return a < b ? a : b; });
  check_integers("max.u32",
                 [](int64_t a, int64_t b) { return std::max(static_cast<uint32_t>(a), static_cast<uint32_t>(b)); });
  const auto [a, b] = pairs();
  const auto wide = results<int64_t>("mul.wide.s32 %rd5, %r1, %r2;", a, b);
  const auto added = results<int64_t>("mov.u64 %rd6, 5; mad.wide.s32 %rd5, %r1, %r2, %rd6;", a, b);
  for (size_t i = 0; i < a.size(); ++i)
    CHECK((wide[i] == int64_t{a[i]} * b[i] && added[i] == int64_t{a[i]} * b[i] + 5));
}

TEST_CASE("ptx: shifts by more than the width, fields of bits, bytes") {
  const auto by = [](int64_t b) { return static_cast<uint64_t>(static_cast<uint32_t>(b)); };
  check_integers("shl.b32", [&](int64_t a, int64_t b) { return by(b) > 31 ? 0 : a << by(b); });
  check_integers("shr.s32", [&](int64_t a, int64_t b) { return a >> std::min<uint64_t>(by(b), 31); });
  check_integers("shr.u32", [&](int64_t a, int64_t b) { return by(b) > 31 ? 0 : static_cast<uint32_t>(a) >> by(b); });
  const std::vector<uint32_t> a{0x11223344}, b{0xaabbccdd};
  CHECK(results<uint32_t>("bfi.b32 %r3, %r1, %r2, 8, 12;", a, b)[0] == 0xaab344dd);
  CHECK(results<uint32_t>("bfi.b32 %r3, %r1, %r2, 0, 32;", a, b)[0] == 0x11223344);
  CHECK(results<uint32_t>("prmt.b32 %r3, %r1, %r2, 0x7410;", a, b)[0] == 0xaadd3344);
  CHECK(results<uint32_t>("prmt.b32 %r3, %r1, %r2, 0x0c80;", a, b)[0] ==
        0x44ff0044);  // bit 3 of a selector: the byte's sign, repeated
}

TEST_CASE("ptx: conversions round and saturate as their modifiers say") {
  const std::vector<float> x{0.5f, 1.5f, -0.5f, -1.5f, 2.75f, -2.75f, 3e9f, -3e9f, kNaN};
  const auto check = [&](const char* modifier, double (*round)(double)) {
    INFO(modifier);
    const auto whole = f32_results("cvt." + std::string(modifier) + ".f32.f32 %f3, %f1;", x, x);
    const auto integers =
        results<int32_t>("mov.b32 %f1, %r1; cvt." + std::string(modifier) + ".s32.f32 %r3, %f1;", x, x);
    for (size_t i = 0; i + 1 < x.size(); ++i) {
      const double y = round(x[i]);
      CHECK(whole[i] == y);
      CHECK(integers[i] == std::clamp(y, -2147483648.0, 2147483647.0));
    }
    CHECK(integers.back() == 0);
  };
  check("rni", std::nearbyint), check("rzi", std::trunc), check("rmi", std::floor), check("rpi", std::ceil);
  // 2^24 + 1 lies between two numbers of f32: to the even one
  CHECK(results<float>("cvt.rn.f32.s32 %f3, %r1; mov.b32 %r3, %f3;",
                       std::vector<float>{std::bit_cast<float>((1 << 24) + 1)}, {0})[0] == 0x1p24f);
}

TEST_CASE("ptx: bf16 is the nearest number, of two the even one") {
  std::vector<float> x;
  for (int i = 0; i < 512; ++i) x.push_back((1 + 0x1p-10f * static_cast<float>(i)) * (i % 2 ? -3 : 1));
  const auto got = results<uint32_t>("mov.b32 %f1, %r1; cvt.rn.bf16.f32 %h1, %f1; cvt.u32.u16 %r3, %h1;", x, x);
  for (size_t i = 0; i < x.size(); ++i) {
    int exponent = 0;
    const double scaled = std::ldexp(std::frexp(x[i], &exponent), 8);  // 8 bits before the point
    CHECK(std::bit_cast<float>(got[i] << 16) == std::ldexp(std::nearbyint(scaled), exponent - 8));
  }
  CHECK(results<uint32_t>("mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.bf16x2.f32 %r3, %f1, %f2;", std::vector<float>{1},
                          {2})[0] == 0x3f804000);
}

TEST_CASE("ptx: comparisons of NaN are false, unordered ones true") {
  const std::vector<float> a{1, 2, 1, kNaN}, b{2, 1, 1, 1};
  const std::pair<const char*, uint32_t> expected[] = {{"lt", 1},   {"le", 5},   {"gt", 2},   {"ge", 6},   {"eq", 4},
                                                       {"ne", 3},   {"ltu", 9},  {"leu", 13}, {"gtu", 10}, {"geu", 14},
                                                       {"equ", 12}, {"neu", 11}, {"num", 7},  {"nan", 8}};
  for (const auto& [name, bits] : expected) {
    INFO(name);
    const auto got = results<uint32_t>("mov.b32 %f1, %r1; mov.b32 %f2, %r2; setp." + std::string(name) +
                                           ".f32 %p1, %f1, %f2; selp.u32 %r3, 1, 0, %p1;",
                                       a, b);
    for (size_t i = 0; i < a.size(); ++i) CHECK(got[i] == (bits >> i & 1));
  }
}

TEST_CASE("ptx: f64, approximations, signs and extrema") {
  const std::vector<double> a{3, -0.0, kInfinity}, b{7, 5, 2};
  const auto binary = [&](const std::string& instruction) {
    return results<double>("mov.b64 %d1, %rd3; mov.b64 %d2, %rd4; " + instruction + " mov.b64 %rd5, %d3;", a, b);
  };
  const auto quotient = binary("div.rn.f64 %d3, %d1, %d2;"), signs = binary("copysign.f64 %d3, %d1, %d2;"),
             reciprocal = binary("rcp.approx.ftz.f64 %d3, %d2;");
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(quotient[i] == a[i] / b[i]);
    CHECK(signs[i] == std::copysign(b[i], a[i]));
    CHECK(std::fabs(reciprocal[i] * b[i] - 1) <= 0x1p-20);
    CHECK(std::bit_cast<uint64_t>(reciprocal[i]) << 32 == 0);
  }
  CHECK(f32_results("ex2.approx.ftz.f32 %f3, %f1;", {-3}, {0})[0] == 0.125f);
  CHECK(f32_results("ex2.approx.ftz.f32 %f3, %f1;", {-130}, {0})[0] == 0);  // subnormal
  CHECK(f32_results("max.f32 %f3, %f1, %f2;", {kNaN}, {2})[0] == 2);
  CHECK(std::signbit(f32_results("min.f32 %f3, %f1, %f2;", {0.0f}, {-0.0f})[0]));
  CHECK(std::bit_cast<uint32_t>(f32_results("sub.f32 %f3, %f1, %f1;", {static_cast<float>(kInfinity)}, {0})[0]) ==
        0x7fffffff);
}
