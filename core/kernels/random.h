// Kernel slots (kernel.h) of random fills. Outputs are contiguous. `state` is the result of Generator::take for the
// number of blocks stated at each slot. Values are made from 53 bits in f64 for every dtype and rounded once: an f32
// tensor holds the rounded values of the f64 tensor.
#pragma once

#include "core/kernels/kernel.h"
#include "core/random.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
void uniform(const Tensor& out, double lo, double hi, Generator state);
void normal(const Tensor& out, double mean, double deviation, Generator state);
void exponential(const Tensor& out, Generator state);
void truncated_normal(const Tensor& out, double mean, double deviation, double lo, double hi, Generator state);
void bernoulli(const Tensor& out, double p, Generator state);
void random_integers(const Tensor& out, int64_t lo, int64_t hi, Generator state);
void random_permutation(const Tensor& out, Generator state);
}  // namespace cpu

// The first five slots take philox_blocks(n, 2) blocks. Element e is part j of 2 of its block (philox_place), and u is
// its uniform number in [0, 1).
//
// lo + (hi - lo) u, kept below hi if rounding would reach it. Floating.
inline constinit Kernel<void(const Tensor&, double, double, Generator)> uniform{"uniform", &cpu::uniform};
// mean + deviation z with z = sqrt(-2 ln(1 - u0)) times cos(2 pi u1) for part 0, sin for part 1 (Box and Muller 1958).
// Floating.
inline constinit Kernel<void(const Tensor&, double, double, Generator)> normal{"normal", &cpu::normal};
// -ln(1 - u). Floating.
inline constinit Kernel<void(const Tensor&, Generator)> exponential{"exponential", &cpu::exponential};
// 1 if u < p, else 0. Any dtype.
inline constinit Kernel<void(const Tensor&, double, Generator)> bernoulli{"bernoulli", &cpu::bernoulli};
// lo + floor((hi - lo) b / 2^64), where b is the part's 64 bits. i64.
inline constinit Kernel<void(const Tensor&, int64_t, int64_t, Generator)> random_integers{"randint",
                                                                                          &cpu::random_integers};

// Element e: the first normal number inside [lo, hi] among the pairs in block e of subsequences 0, 1, 2, ..., rounded
// to the nearest value of the dtype inside. n blocks. Throws if there is none.
inline constinit Kernel<void(const Tensor&, double, double, double, double, Generator)> truncated_normal{
    "truncated_normal", &cpu::truncated_normal};
// A permutation of 0 .. n - 1 (i64) by Fisher and Yates: for i = n - 1 .. 1, swap i with floor((i + 1) b / 2^64), with
// b from block i. n blocks.
inline constinit Kernel<void(const Tensor&, Generator)> random_permutation{"randperm", &cpu::random_permutation};

// Slot of dropout.

namespace cpu {
template <Isa I> void dropout(const Tensor& out, const Tensor& x, double p, Generator state);
}  // namespace cpu

// out = x / (1 - p) if the element's 32 random bits (part j of 4 of its block) are >= p 2^32, else 0. Contiguous, of a
// floating dtype. `state`: the result of Generator::take for philox_blocks(n, 4) blocks.
inline constinit Kernel<void(const Tensor&, const Tensor&, double, Generator)> dropout{
    "dropout", []<Isa I>() { return &cpu::dropout<I>; }};

}  // namespace isonorm::kernels
