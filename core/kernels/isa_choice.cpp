#include "core/kernels/isa_choice.h"

#include <algorithm>
#include <cstdlib>

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/error.h"

namespace isonorm {

namespace {

#ifdef __x86_64__
// Asks Linux for permission to use AMX's tile data (Documentation/arch/x86/xstate.rst). Returns false if it refuses.
bool request_tiles() {
  constexpr int request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

Processor read_processor() {
  Processor p;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d))
    for (const unsigned four : {b, d, c})
      for (int i = 0; i < 4; ++i) p.vendor += static_cast<char>(four >> 8 * i & 0xff);
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    const FamilyAndModel is = family_and_model(a);
    p.family = is.family, p.model = is.model;
  }
  __builtin_cpu_init();
  p.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  p.avx512 = p.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  p.avx512_bf16 = p.avx512 && __builtin_cpu_supports("avx512bf16");
  constexpr unsigned tiles = 1u << 24, tiles_of_bf16 = 1u << 22;
  p.amx_bf16 = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & tiles) && (d & tiles_of_bf16);
  p.tiles_granted = p.amx_bf16 && request_tiles();
  return p;
}
#else
Processor read_processor() { return {}; }
#endif

Isa best_of(const Processor& p) {
  if (!p.avx2) return Isa::base;
  if (!p.avx512) return Isa::avx2;
  if (!p.avx512_bf16) return Isa::avx512;
  return p.amx_bf16 && p.tiles_granted ? Isa::amx_bf16 : Isa::avx512_bf16;
}

const MeasuredCpu* measured(const Processor& p) {
  const auto* const row = std::ranges::find_if(kFastPairs, [&](const MeasuredCpu& cpu) {
    return cpu.vendor == p.vendor && cpu.family == p.family && cpu.model == p.model;
  });
  return row == std::end(kFastPairs) ? nullptr : row;
}

Isa isa_named(std::string_view wish, Isa least) {
  const auto* const name = std::ranges::find(kIsaNames, wish);
  if (name == std::end(kIsaNames)) {
    std::string names;
    for (const char* one : kIsaNames) names += names.empty() ? one : std::string(", ") + one;
    raise_text(ErrorKind::invalid, __FILE__, __LINE__, "ISONORM_ISA: \"", wish, "\" is not one of ", names);
  }
  const Isa isa = static_cast<Isa>(name - kIsaNames);
  if (isa < least)
    raise_text(ErrorKind::invalid, __FILE__, __LINE__, "ISONORM_ISA: this build has no ", wish, ", only ",
               name_of(least));
  return isa;
}

}  // namespace

FamilyAndModel family_and_model(unsigned eax) {
  const int family = eax >> 8 & 0xf, model = eax >> 4 & 0xf, more_family = eax >> 20 & 0xff,
            more_model = eax >> 16 & 0xf;
  return {family == 15 ? family + more_family : family, family == 6 || family == 15 ? model + 16 * more_model : model};
}

std::string name_of(const Processor& p) {
  return p.vendor.empty() ? "" : text(p.vendor, " family ", p.family, " model ", p.model);
}

int vector_bits(const Processor& p) { return p.avx512 ? 512 : p.avx2 ? 256 : 128; }

const Processor& this_processor() {
  static const Processor processor = read_processor();
  return processor;
}

IsaChoice choose_isa(const Processor& p, std::string_view wish, Isa least, Isa most) {
  const Isa best = std::min(best_of(p), most);
  if (best < least)
    raise_text(ErrorKind::invalid, __FILE__, __LINE__, "this build is for machines with ", name_of(least),
               ", this one has ", name_of(best), "; configure it with ISONORM_KERNELS=all");
  if (!wish.empty()) return {std::min(best, isa_named(wish, least)), text("ISONORM_ISA=", wish)};
  if (best == Isa::amx_bf16) return {best, "the operating system grants AMX's tiles"};
  if (best < Isa::avx512_bf16) return {best, "the best of this CPU and this build"};
  if (const MeasuredCpu* cpu = measured(p))
    return {best, text("vdpbf16ps beats widening on ", name_of(p), ", ", cpu->log)};
  const char* const tiles = p.amx_bf16 ? "the operating system refuses AMX's tiles, and " : "";
  return {Isa::avx512, text(tiles, "vdpbf16ps is not known to beat widening on ", name_of(p))};
}

const IsaChoice& isa_choice() {
  constexpr Isa most = kCompiled[2] == Isa::avx512 ? Isa::amx_bf16 : kCompiled[2];
  static const IsaChoice choice = [] {
    const char* const wish = std::getenv("ISONORM_ISA");
    return choose_isa(this_processor(), wish ? wish : "", kCompiled[0], most);
  }();
  return choice;
}

Isa isa() {
  static const Isa chosen = isa_choice().isa;
  return chosen;
}

}  // namespace isonorm
