// Products of small matrices by a warp, and asynchronous copies to shared memory. The only inline PTX of gpu/ is here
// (sm_80 and later); emulated/tensor_core.h has the same functions for a host compiler.
//
// The elements of a lane, with g = lane / 4 and t = lane % 4 (PTX manual, "Matrix Fragments for mma.m16n8k16"). A word
// has two neighbours, the first in its lower half:
//   a, 16 x 16   word i: row g + 8 (i % 2), columns 2 t + 8 (i / 2) and the next
//   b, 16 x 8    word i: rows 2 t + 8 i and the next, column g
//   c, 16 x 8    number i: row g + 8 (i / 2), column 2 t + i % 2
// So two c with neighbouring columns, rounded, form one a: {c[0], c[1]}, {c[2], c[3]} of the first, then of the second.
#pragma once

#include "gpu/block.cuh"

#ifdef ISONORM_GPU_EMULATED
#include "tests/emulated_gpu/tensor_core.h"
#else

namespace isonorm::gpu {

struct Quad {
  uint32_t r[4];
};

// c += a b, by the whole warp.
__device__ __forceinline__ void multiply_add(float (&c)[4], const Quad& a, uint32_t b0, uint32_t b1) {
  asm volatile(  // so that it cannot move into a branch that a part of the warp takes
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Loads four 8 x 8 matrices, by the whole warp. Lane l passes row l % 8 of matrix l / 8, 16 bytes of shared memory.
// Word i of the result comes from matrix i: row g, columns 2 t and 2 t + 1; transposed: rows 2 t and 2 t + 1, column g.
__device__ __forceinline__ Quad load_matrices(const void* row) {
  Quad m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.r[0]), "=r"(m.r[1]), "=r"(m.r[2]), "=r"(m.r[3])
               : "r"(shared_address(row))
               : "memory");
  return m;
}
__device__ __forceinline__ Quad load_transposed(const void* row) {
  Quad m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.r[0]), "=r"(m.r[1]), "=r"(m.r[2]), "=r"(m.r[3])
               : "r"(shared_address(row))
               : "memory");
  return m;
}

// Begins to copy 16 bytes to shared memory; if not `inside`, writes zeros and reads nothing. Until the calling thread
// has waited for the copy, `to` holds neither the old bytes nor the new ones; other threads also need a barrier after
// that wait.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool inside = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
// Makes a group of the copies begun since the last call.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all groups of this thread but the last kLeft.
template <int kLeft> __device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Two numbers rounded to bf16 in a word, the first in the lower half.
__device__ __forceinline__ uint32_t two_bf16(float first, float second) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}
// 2^x by the special function unit (2 ulp); 0 for -inf and if the result would be subnormal.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace isonorm::gpu
#endif
