// Kernel slots (kernel.h) of normalization by rows. Tensors are contiguous [rows, width], of the same floating dtype;
// or, if native_bf16(), of f32 and bf16 in any mixture, computed in f32 and rounded once per result. A bf16 `sum` with
// f32 tensors is allowed on every device. Undefined tensors are absent.
#pragma once

#include <cmath>

#include "core/formulas/hd.h"
#include "core/formulas/norm_spec.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct NormOutputs {
  Tensor y;      // the normalized rows
  Tensor sum;    // x + branch; undefined if there is no branch. y and stats are computed from the sum as stored
  Tensor stats;  // [rows, 2] of acc dtype: (mean or, for crms, sum of the row; 1/root)

  static auto tensors(auto& s) { return std::tie(s.y, s.sum, s.stats); }
};
struct NormInputs {
  Tensor x, branch, gain, bias;

  static auto tensors(auto& s) { return std::tie(s.x, s.branch, s.gain, s.bias); }
};

struct NormGradients {
  Tensor dx;
  Tensor dgain, dbias;  // [width]; undefined if not wanted
  Tensor dbranch = {};  // dx again in another dtype; undefined if not wanted

  static auto tensors(auto& s) { return std::tie(s.dx, s.dgain, s.dbias, s.dbranch); }
};
struct NormSaved {
  Tensor dy;    // gradient of the normalized rows
  Tensor dsum;  // added to dx, if defined
  Tensor x;     // the normalized tensor; if `normalized`, the result without gain and bias
  bool normalized;
  Tensor stats, gain;

  static auto tensors(auto& s) { return std::tie(s.dy, s.dsum, s.x, s.stats, s.gain); }
};

namespace cpu {
template <Isa I> void norm_forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in);
template <Isa I> void norm_backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in);
}  // namespace cpu

inline constinit Kernel<void(const NormSpec&, const NormOutputs&, const NormInputs&)> norm_forward{
    "norm_forward", []<Isa I>() { return &cpu::norm_forward<I>; }};
inline constinit Kernel<void(const NormSpec&, const NormGradients&, const NormSaved&)> norm_backward{
    "norm_backward", []<Isa I>() { return &cpu::norm_backward<I>; }};

// Kernel slots (kernel.h) of norms whose statistics are taken over places and channels: batch, group and instance norm.

// Contiguous x viewed as [outer, length, groups, width], with one statistic for each (outer, group) over length and
// width.
struct GroupNormShape {
  static constexpr int64_t kStats = 4;  // numbers per statistic, see GroupNormOutputs

  int64_t outer, length, groups, width;
  int64_t leading;   // the statistic is taken over this many leading places of `length`; all if `centred`
  bool centred;      // normalizes x - mean, else x
  bool eps_outside;  // the root is sqrt(mean square) + eps, else sqrt(mean square + eps)
  double eps;

  ISO_HD int64_t channels() const { return groups * width; }
  ISO_HD int64_t entries() const { return leading * width; }  // elements in a statistic

  // 1 / root, from the mean square of the entries.
  template <class A> ISO_HD A inverse_root(A square) const {
    return 1 / (eps_outside ? std::sqrt(square) + A(eps) : std::sqrt(square + A(eps)));
  }
  // The derivative of 1 / root with respect to an entry x is -slope x. slope = inverse^3 / entries, or, with eps
  // outside, inverse^2 / (entries sqrt(square)), taken as 0 if all entries are 0.
  template <class A> ISO_HD A slope(A square, A inverse) const {
    const A n = static_cast<A>(entries());
    if (!eps_outside) return inverse * inverse * inverse / n;
    return square > 0 ? inverse * inverse / (n * std::sqrt(square)) : A(0);
  }
};

struct GroupNormOutputs {
  Tensor y;  // like x
  // [outer, groups, kStats] of acc dtype: the mean (0 unless centred), the mean square of the entries after centring,
  // the value 1 / root, and the rounding error of the mean, which x - mean would carry if the mean is large.
  Tensor stats;

  static auto tensors(auto& s) { return std::tie(s.y, s.stats); }
};
struct GroupNormInputs {
  Tensor x;
  Tensor gain, bias;  // [groups width] of acc dtype; undefined if absent

  static auto tensors(auto& s) { return std::tie(s.x, s.gain, s.bias); }
};
struct GroupNormGradients {
  Tensor dx;
  Tensor dgain, dbias;  // [groups width] of acc dtype; undefined if not wanted

  static auto tensors(auto& s) { return std::tie(s.dx, s.dgain, s.dbias); }
};
struct GroupNormSaved {
  Tensor dy, x, stats, gain;

  static auto tensors(auto& s) { return std::tie(s.dy, s.x, s.stats, s.gain); }
};

namespace cpu {
template <Isa I>
void group_norm_forward(const GroupNormShape& shape, const GroupNormOutputs& out, const GroupNormInputs& in);
template <Isa I>
void group_norm_backward(const GroupNormShape& shape, const GroupNormGradients& out, const GroupNormSaved& in);
}  // namespace cpu

// y = (x - mean) / root gain + bias. x of a floating dtype.
inline constinit Kernel<void(const GroupNormShape&, const GroupNormOutputs&, const GroupNormInputs&)>
    group_norm_forward{"group_norm_forward", []<Isa I>() { return &cpu::group_norm_forward<I>; }};
// With h = gain dy, c = x - mean, S = sum(h c) over the whole group, and [leading] = 1 for entries of the statistic,
// else 0: dx = h / root - [leading] c S slope - mean(h) / root [centred only].
inline constinit Kernel<void(const GroupNormShape&, const GroupNormGradients&, const GroupNormSaved&)>
    group_norm_backward{"group_norm_backward", []<Isa I>() { return &cpu::group_norm_backward<I>; }};

}  // namespace isonorm::kernels
