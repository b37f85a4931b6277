#include "benchmarks/gemms.h"
#include "core/kernels/kernel.h"
#include "core/system/parallel.h"

namespace isonorm::bench {
namespace {

template <int bytes> struct Register;
template <> struct Register<16> { typedef float type __attribute__((vector_size(16))); };
template <> struct Register<32> { typedef float type __attribute__((vector_size(32))); };
template <> struct Register<64> { typedef float type __attribute__((vector_size(64))); };

// Two units that each start a multiply-add per cycle and need four or five cycles for it require ten independent
// chains.
template <int bytes> [[gnu::always_inline]] inline void chains(int64_t flops) {
  constexpr int count = 12;
  using Vec = typename Register<bytes>::type;
  Vec sum[count] = {};
  for (Vec& s : sum) asm("" : "+m"(s));  // hides from the compiler that all chains are equal
  const Vec factor = Vec{} + 0.5f, summand = Vec{} + 1.0f;
  for (int64_t i = 0; i < flops / (count * bytes / 2); ++i)
#pragma GCC unroll 12
    for (int c = 0; c < count; ++c) sum[c] = sum[c] * factor + summand;
  for (Vec& s : sum) asm volatile("" : : "m"(s));
}

void base(int64_t flops) { chains<16>(flops); }
#ifdef __x86_64__
[[gnu::target("avx2,fma")]] void avx2(int64_t flops) { chains<32>(flops); }
[[gnu::target("avx512f,fma")]] void avx512(int64_t flops) { chains<64>(flops); }
#else
constexpr auto avx2 = base, avx512 = base;
#endif

}  // namespace

void multiply_add(double flops) {
  const auto run = isa() >= Isa::avx512 ? avx512 : isa() == Isa::avx2 ? avx2 : base;
  constexpr int64_t block = 1 << 24;
  parallel_for(static_cast<int64_t>(flops) / block, 1, [&](int64_t begin, int64_t end) { run((end - begin) * block); });
}

}  // namespace isonorm::bench
