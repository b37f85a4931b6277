// Internal: the choice of the kernels' instruction set. It depends on the processor and the operating system, and
// measures nothing: a machine has the same kernels, and so the same bits, in every run.
#pragma once

#include <string>
#include <string_view>

#include "core/kernels/isa.h"

namespace isonorm {

// The processor's features, from CPUID and the operating system. A feature counts only if the operating system saves
// its registers.
struct Processor {
  std::string vendor;         // "GenuineIntel", "AuthenticAMD"; empty off x86-64
  int family = 0, model = 0;  // as in /proc/cpuinfo
  bool avx2 = false;          // with FMA
  bool avx512 = false;        // F, DQ, BW and VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;       // AMX_TILE and AMX_BF16
  bool tiles_granted = false;  // the operating system lets this process use AMX's tiles
};

// The processor that this runs on. Asks the operating system for AMX's tiles if the processor has them.
const Processor& this_processor();

// "GenuineIntel family 6 model 207"; empty off x86-64.
std::string name_of(const Processor& processor);

// Width, in bits, of the widest vectors that our kernels use on this processor: 128, 256 or 512. OpenBLAS's core may
// use narrower ones (core/system/blas.h).
int vector_bits(const Processor& processor);

// Family and model in EAX of CPUID leaf 1 (Intel, "Software Developer's Manual", volume 2, CPUID; AMD, APM volume 3,
// appendix E).
struct FamilyAndModel {
  int family, model;
};
FamilyAndModel family_and_model(unsigned eax);

struct IsaChoice {
  Isa isa;
  std::string reason;  // one clause, for manifests and `isonorm info`
};

// Chooses the instruction set for a build that has the sets from `least` to `most`: AMX if the operating system grants
// its tiles; AVX512_BF16 if vdpbf16ps was measured to beat widening on this family and model (it is slower on some
// CPUs); else the best set without products of bf16.
//
// wish: the value of ISONORM_ISA, one of kIsaNames; empty: none. It replaces the rules above. If the processor or the
// build lacks the wished set, the result is the best set that both have.
//
// Throws if the wish is not a name or is less than `least`, or if the processor has less than `least`.
IsaChoice choose_isa(const Processor& processor, std::string_view wish = {}, Isa least = Isa::base,
                     Isa most = Isa::amx_bf16);

// This process's choice, from its processor, its build and ISONORM_ISA in the environment.
const IsaChoice& isa_choice();

// A CPU on which training and inference in bf16 were faster with vdpbf16ps than with widening. `log` is the record of
// the run, which measured both in turns.
struct MeasuredCpu {
  std::string_view vendor;
  int family, model;
  const char* log;
};
inline constexpr MeasuredCpu kFastPairs[] = {
    {"AuthenticAMD", 26, 2, "benchmarks/results/2026-11-29-epyc-zen5-bf16.txt"},  // EPYC, Zen 5
};

}  // namespace isonorm
