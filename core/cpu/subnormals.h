// Subnormal numbers (below 1.2e-38 in f32) in kernels that multiply and add.
#pragma once

#include <type_traits>

namespace isonorm {
namespace {

// While it lives, subnormal f32 numbers count as 0 in this thread, as operands and as results. Each would cost the
// processor a hundred cycles. In a sum, a product with a subnormal number is lost anyway unless the whole sum is as
// small. Does nothing for f64 (T = double): trainings have no numbers below 1e-308, and conversions compute exactly
// with them.
template <class T> class FlushSubnormals {
 public:
#ifdef __x86_64__
  FlushSubnormals() {
    if constexpr (kFlushes) {
      before_ = __builtin_ia32_stmxcsr();
      __builtin_ia32_ldmxcsr(before_ | 0x8040);  // flush to zero, subnormals are zeros
    }
  }
  ~FlushSubnormals() {
    if constexpr (kFlushes) __builtin_ia32_ldmxcsr(before_);
  }
#else
  FlushSubnormals() = default;
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  static constexpr bool kFlushes = !std::is_same_v<T, double>;
  [[maybe_unused]] unsigned before_ = 0;
};

}  // namespace
}  // namespace isonorm
