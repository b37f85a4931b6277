// ISO_HD, the project's only macro, marks a scalar function that is compiled into the kernels of every instruction set
// and of CUDA. It is always inlined on the host, so that a copy compiled for AVX-512 can never be linked into code for
// an older machine.
#pragma once

#ifdef __CUDACC__
#define ISO_HD __host__ __device__ __forceinline__
#else
#define ISO_HD __attribute__((always_inline)) inline
#endif
