#include "core/kernels/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace isonorm {

const char* name_of(Isa isa) {
  constexpr const char* names[] = {"base", "avx2", "avx512", "avx512_bf16"};
  return names[static_cast<int>(isa)];
}

namespace {

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
  for (const Isa asked : {Isa::base, Isa::avx2, Isa::avx512, Isa::avx512_bf16})
    if (std::string_view(wish) == name_of(asked)) {
      if (asked >= kCompiled[0]) return std::min(best, asked);
      raise_text(ErrorKind::invalid, __FILE__, __LINE__, "ISONORM_ISA: this build has no ", wish, ", only ",
                 name_of(kCompiled[0]));
    }
  raise_text(ErrorKind::invalid, __FILE__, __LINE__, "ISONORM_ISA: \"", wish,
             "\" is not base, avx2, avx512 or avx512_bf16");
}

}  // namespace

Isa isa() {
  static const Isa best = detect();
  return best;
}

}  // namespace isonorm
