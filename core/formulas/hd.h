// ISO_HD, the project's only macro: a scalar function that kernels of every instruction set and of CUDA compile into
// themselves. Always inlined on the host, so that one copy compiled for AVX-512 can never be linked into code for an
// older machine.
#pragma once

#ifdef __CUDACC__
#define ISO_HD __host__ __device__ __forceinline__
#else
#define ISO_HD __attribute__((always_inline)) inline
#endif
