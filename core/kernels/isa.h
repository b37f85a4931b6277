// Instruction sets of the CPU kernels, and the set that this process uses.
#pragma once

namespace isonorm {

// The instruction sets: x86-64 as of 2003; AVX2 with FMA; AVX-512 with F, DQ, BW and VL; AVX-512 with AVX512_BF16;
// AVX-512 with AVX512_BF16 and AMX_BF16. Each contains the sets before it. The last three differ only in how they
// multiply bf16: widened to f32, by vdpbf16ps, or by AMX's tiles.
enum class Isa { base, avx2, avx512, avx512_bf16, amx_bf16 };
inline constexpr const char* kIsaNames[] = {"base", "avx2", "avx512", "avx512_bf16", "amx_bf16"};
inline const char* name_of(Isa isa) { return kIsaNames[static_cast<int>(isa)]; }

// The instruction set of this process's kernels, chosen by choose_isa() (isa_choice.h) at the first call. Throws like
// choose_isa().
Isa isa();

// The instruction sets for which a kernel slot has a CPU function. CPUs other than x86-64 have only the base set. A
// build with ISONORM_KERNELS=native has only the best set of the machine that compiled it.
#ifdef ISONORM_ONLY
inline constexpr Isa kCompiled[3] = {Isa::ISONORM_ONLY, Isa::ISONORM_ONLY, Isa::ISONORM_ONLY};
#elif defined(__x86_64__)
inline constexpr Isa kCompiled[3] = {Isa::base, Isa::avx2, Isa::avx512};
#else
inline constexpr Isa kCompiled[3] = {Isa::base, Isa::base, Isa::base};
#endif

}  // namespace isonorm
