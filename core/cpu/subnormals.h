// Subnormal numbers, below 1.2e-38 in f32, in kernels that multiply and add.
#pragma once

#include <type_traits>

namespace isonorm {
namespace {

// While it lives, subnormal numbers of this thread count as 0 in f32, as operands and as results: each one costs a
// processor a hundred cycles, and a product of them, below 1e-38 times its other factor, is lost in any sum that is not.
// For f64 (T = double) it does nothing: trainings hold no numbers below 1e-308, and conversions compute exactly with them.
template <class T> class FlushSubnormals {
 public:
#ifdef __x86_64__
  FlushSubnormals() : before_(__builtin_ia32_stmxcsr()) {
    if (!std::is_same_v<T, double>) __builtin_ia32_ldmxcsr(before_ | 0x8040);  // flush to zero, subnormals are zeros
  }
  ~FlushSubnormals() { __builtin_ia32_ldmxcsr(before_); }
#else
  FlushSubnormals() = default;
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  [[maybe_unused]] unsigned before_ = 0;
};

}  // namespace
}  // namespace isonorm
