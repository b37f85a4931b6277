#include "core/kernels/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/error.h"

namespace isonorm {

namespace {

// Whether the processor has AMX's tiles of bf16, and the operating system, which saves them with a thread, lets this
// process use them (Linux, Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
#ifdef __x86_64__
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned tiles = 1u << 24, of_bf16 = 1u << 22;
  constexpr int ask = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (d & tiles) && (d & of_bf16) && syscall(SYS_arch_prctl, ask, tile_data) == 0;
#else
  return false;
#endif
}

Isa machine() {
  Isa best = Isa::base;
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = Isa::avx2;
  if (best == Isa::avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    best = __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
#endif
  return best;
}

Isa detect() {
  const Isa best = machine();
  if (best < kCompiled[0])
    raise_text(ErrorKind::invalid, __FILE__, __LINE__, "this build is for machines with ", name_of(kCompiled[0]),
               ", this one has ", name_of(best), "; configure it with ISONORM_KERNELS=all");
  const char* wish = std::getenv("ISONORM_ISA");
  if (!wish || !*wish) return best;
  const auto* const name = std::find(std::begin(kIsaNames), std::end(kIsaNames), std::string_view(wish));
  if (name == std::end(kIsaNames)) {
    std::string names;
    for (const char* one : kIsaNames) names += names.empty() ? one : std::string(", ") + one;
    raise_text(ErrorKind::invalid, __FILE__, __LINE__, "ISONORM_ISA: \"", wish, "\" is not one of ", names);
  }
  const Isa asked = static_cast<Isa>(name - kIsaNames);
  if (asked < kCompiled[0])
    raise_text(ErrorKind::invalid, __FILE__, __LINE__, "ISONORM_ISA: this build has no ", wish, ", only ",
               name_of(kCompiled[0]));
  if (asked == Isa::amx_bf16 && best == Isa::avx512_bf16 && may_use_tiles()) return asked;
  return std::min(best, asked);
}

}  // namespace

Isa isa() {
  static const Isa best = detect();
  return best;
}

}  // namespace isonorm
