// The floating-point environment that the library computes in.
#pragma once

#include <cstdint>

namespace isonorm {

// While an object lives, its thread computes in C's default environment: it rounds to nearest, keeps subnormal numbers
// and raises no signal. A program may have changed this by fesetround() or feenableexcept(), or by -ffast-math in its
// link command, which turns subnormal numbers off at program start. Does nothing on CPUs other than x86-64 and 64-bit
// ARM.
class DefaultFloatEnvironment {
 public:
  [[nodiscard]] DefaultFloatEnvironment() : before_(read()) {
    if ((before_ & kModes) != kDefault) write(kDefault);
  }
  ~DefaultFloatEnvironment() {
    if ((before_ & kModes) != kDefault) write(before_);
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)  // MXCSR, whose lower bits are flags
  static constexpr uint64_t kModes = 0xffc0, kDefault = 0x1f80;
  static uint64_t read() {
    uint32_t mxcsr;
    asm volatile("stmxcsr %0" : "=m"(mxcsr));
    return mxcsr;
  }
  static void write(uint64_t to) {
    const uint32_t mxcsr = static_cast<uint32_t>(to);
    asm volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
  }
#elif defined(__aarch64__)  // FPCR
  static constexpr uint64_t kModes = ~uint64_t{0}, kDefault = 0;
  static uint64_t read() {
    uint64_t fpcr;
    asm volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
  }
  static void write(uint64_t to) { asm volatile("msr fpcr, %0" : : "r"(to) : "memory"); }
#else
  static constexpr uint64_t kModes = 0, kDefault = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  uint64_t before_;
};

}  // namespace isonorm
