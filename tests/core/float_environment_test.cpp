// Results do not depend on the floating-point environment that a program has set for its own arithmetic.
#include "core/system/float_environment.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/shape.h"
#include "io/number_format.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"
#include "tests/support/same_bytes.h"
#include "tests/support/threads.h"

using namespace isonorm;
using isonorm::test::status_of_child;
using isonorm::test::Threads;

namespace {

// -ffast-math in a link command does this before main().
void flush_subnormals() {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  asm volatile("msr fpcr, %0" : : "r"(fpcr | 1 << 24));
#endif
}

const std::vector<std::function<void()>> kSettings = {
    flush_subnormals,
    [] { fesetround(FE_UPWARD); },
    [] { fesetround(FE_DOWNWARD); },
    [] { fesetround(FE_TOWARDZERO); },
    [] { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW); },
};

// Changes the floating-point environment of the test for a scope.
struct Environment {
  fenv_t before;
  explicit Environment(const std::function<void()>& set) {
    fegetenv(&before);
    set();
  }
  ~Environment() { fesetenv(&before); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

// Results with enough elements for several threads, with subnormal numbers, with roundings, and with 0/0 in between.
std::vector<Tensor> results() {
  Generator generator{7, 0};
  const Tensor x = randn({300, 300}, {DType::f64}, generator), y = to(x, DType::f32);
  return {x,
          y,
          to(y, DType::bf16),
          uniform({100'000}, -0.3, 1.1, {DType::f64}, generator),
          exp(y * 30.0 - 90.0),
          log(abs(y) * 1e-38),
          y * 1e-39,
          sqrt(y),
          sum(y),
          matmul(y, y),
          matmul(x, x),
          softmax(y * 40.0, -1),
          layer_norm(y),
          rounded(y, {DType::f32, true}, "y"),
          linspace(0.1, 0.7, 777, {DType::f64}),
          arange(0.1, 0.7, 0.001, {DType::f64})};
}

uint32_t bits_of_only(const Tensor& t) { return std::bit_cast<uint32_t>(t.data<float>()[0]); }

}  // namespace

TEST_CASE("results have the same bits whatever the program has set for its arithmetic") {
  const std::vector<Tensor> expected = results();
  for (size_t i = 0; i < kSettings.size(); ++i) {
    std::vector<Tensor> found;
    {
      const Environment environment(kSettings[i]);
      found = results();
    }
    for (size_t k = 0; k < found.size(); ++k) {
      CAPTURE(i, k);
      CHECK(same_bytes(found[k], expected[k]));
    }
  }
}

TEST_CASE("subnormal numbers and roundings are IEEE 754's whatever the program has set") {
  // exp(-100) is 26.54 units of the smallest f32. 1 + 2^-24 and 1 + 3 2^-24 are ties, which round to the even
  // neighbour.
  constexpr double smallest = std::numeric_limits<float>::denorm_min();
  const Tensor low = full({1}, -100.0), three = full({1}, 3.0), one = full({1}, 1.0);
  for (const auto& set : kSettings) {
    uint32_t exponential, multiple, tie_down, tie_up;
    {
      const Environment environment(set);
      exponential = bits_of_only(exp(low));
      multiple = bits_of_only(three * smallest);
      tie_down = bits_of_only(one + 0x1p-24);
      tie_up = bits_of_only(one + 3 * 0x1p-24);
    }
    CHECK(exponential == 27);
    CHECK(multiple == 3);
    CHECK(tie_down == std::bit_cast<uint32_t>(1.0f));
    CHECK(tie_up == std::bit_cast<uint32_t>(1.0f + 0x1p-22f));
  }
}

TEST_CASE("tables of rotary embeddings, which are kept, do not hold roundings of the program's arithmetic") {
  Generator generator{8, 0};
  const Tensor x = randn({50, 1, 16}, {DType::f64}, generator);
  for (size_t i = 0; i < kSettings.size(); ++i) {
    const int64_t n = 30 + static_cast<int64_t>(i);  // a table that no other test has computed
    Tensor found;
    {
      const Environment environment(kSettings[i]);
      found = rotary(narrow(x, 0, 0, n));
    }
    CAPTURE(i);
    CHECK(same_bytes(found, contiguous(narrow(rotary(x), 0, 0, n))));
  }
}

TEST_CASE("threads that start under another arithmetic compute as the others") {
  const std::vector<Tensor> expected = results();
  for (const auto& set : kSettings)
    CHECK(status_of_child([&] {  // a child starts its own threads
            const Threads threads(4);
            std::vector<Tensor> found;
            {
              const Environment environment(set);
              parallel_for(1000, 1, [](int64_t, int64_t) {});
              found = results();
            }
            for (size_t k = 0; k < found.size(); ++k)
              if (!same_bytes(found[k], expected[k])) _exit(1);
          }) == 0);
}

TEST_CASE("the program's arithmetic is its own again after a call") {
  volatile float one = 1, third = 3;
  for (const auto& [mode, bits] : {std::pair{FE_UPWARD, 0x3eaaaaabu}, {FE_TOWARDZERO, 0x3eaaaaaau}}) {
    uint32_t after;
    {
      const Environment environment([mode = mode] { fesetround(mode); });
      exp(full({100'000}, -100.0));
      after = std::bit_cast<uint32_t>(one / third);
      CHECK(fegetround() == mode);
    }
    CHECK(after == bits);
  }
}
