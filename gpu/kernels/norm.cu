// norm_forward: normalization of rows, with the residual addition before it.
//
// A team (gpu/rows.cuh) for each row. Reads x (and branch) once, writes y (and their sum) and two statistics. Rows that
// fit stay in registers between the passes; wider or unaligned rows are read again, from cache. Only bandwidth matters:
// up to four loads of 16 bytes in flight per thread, and no barrier if a warp has the row. Mixtures of f32 and bf16 are
// computed in f32, and bf16 is loaded and stored by 8 bytes.
#include <cmath>

#include "core/kernels/norm.h"
#include "gpu/rows.cuh"

namespace isonorm::gpu {
namespace {

// Null pointers: absent tensors.
template <class T> struct Forward {
  using A = acc_t<T>;
  Rows rows;
  Target<T> y, sum;
  A* stats;
  Source<T> x, branch, gain, bias;
  int64_t entries;
  A divisor, eps;
};

template <NormKind K, bool held, class T> __global__ void __launch_bounds__(256, 2) forward_rows(const Forward<T> a) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  using P = Pack<T, N>;
  const Team team(a.rows);
  const int64_t r = team.number, row = r * a.rows.width;
  if (r >= a.rows.count) return;  // the whole team leaves
  const bool packed = held || a.rows.packed;
  const auto read = [&](int64_t i, int n) {  // x, or x + branch as it is stored
    P p = load_part(a.x, row + i, n, packed);
    if (a.branch) {
      const P b = load_part(a.branch, row + i, n, packed);
      for (int k = 0; k < N; ++k) p.v[k] = a.sum.rounded(A(p.v[k]) + A(b.v[k]));
    }
    return p;
  };
  RowPacks<T, held> mine;
  mine.bring(team, a.rows, read);
  A sums[2] = {0, 0};  // of the elements; of their squares
  for_packs<T, held>(team, a.rows, [&](int64_t i, int n, int slot) {
    const P p = mine.at(i, n, slot, read);
    for (int k = 0; k < N; ++k) {
      const A v(p.v[k]);  // 0 after the row's end
      if constexpr (K != NormKind::rms) sums[0] += v;
      if constexpr (K != NormKind::layer) {
        const A counted = K == NormKind::crms || i + k < a.entries ? v : A(0);
        sums[1] = std::fma(counted, counted, sums[1]);
      }
    }
  });
  TeamRoom<A, 2>& room = shared<TeamRoom<A, 2>>();
  team_reduce<Plus>(team, sums, room);
  if constexpr (K == NormKind::layer) {  // around the mean: E[x^2] - mean^2 would cancel
    sums[0] /= a.divisor;
    A squares[1] = {0};
    for_packs<T, held>(team, a.rows, [&](int64_t i, int n, int slot) {
      const P p = mine.at(i, n, slot, read);
      for (int k = 0; k < N; ++k) {
        const A v = k < n ? A(p.v[k]) - sums[0] : A(0);
        squares[0] = std::fma(v, v, squares[0]);
      }
    });
    team_reduce<Plus>(team, squares, shared<TeamRoom<A, 1>>());
    sums[1] = squares[0];
  }
  if constexpr (K == NormKind::crms) sums[1] += sums[0] * sums[0];
  const A shift = sums[0], mean = K == NormKind::layer ? shift : A(0);
  const A scale = 1 / std::sqrt(sums[1] / a.divisor + a.eps);
  if (team.thread == 0) {
    a.stats[2 * r] = shift;
    a.stats[2 * r + 1] = scale;
  }
  for_packs<T, held>(team, a.rows, [&](int64_t i, int n, int slot) {
    const P p = mine.at(i, n, slot, read);
    if (a.sum) store_part(a.sum, row + i, p, n, packed);
    A v[N];
    for (int k = 0; k < N; ++k) v[k] = (A(p.v[k]) - mean) * scale;
    if (a.gain) {
      const P gain = load_part(a.gain, i, n, packed);
      for (int k = 0; k < N; ++k) v[k] *= A(gain.v[k]);
    }
    if (a.bias) {
      const P bias = load_part(a.bias, i, n, packed);
      for (int k = 0; k < N; ++k) v[k] += A(bias.v[k]);
    }
    P y;
    for (int k = 0; k < N; ++k) y.v[k] = T(v[k]);
    store_part(a.y, row + i, y, n, packed);
  });
}

}  // namespace

void norm_forward(const NormSpec& spec, const kernels::NormOutputs& out, const kernels::NormInputs& in) {
  if (in.x.numel() == 0) return;
  const DType dtype = dtype_of_rows({&in.x, &in.branch, &in.gain, &in.bias, &out.y, &out.sum});
  visit_floating(dtype, "norm", [&]<class T>() {
    using A = acc_t<T>;
    const Source<T> x = source_of<T>(in.x), branch = source_of<T>(in.branch), gain = source_of<T>(in.gain),
                    bias = source_of<T>(in.bias);
    const Target<T> y = target_of<T>(out.y), sum = target_of<T>(out.sum);
    const int64_t width = in.x.size(-1);
    const Forward<T> a{rows_of<T>(in.x, x.rows, branch.rows, gain.rows, bias.rows, y.rows, sum.rows),
                       y,
                       sum,
                       write<A>(out.stats),
                       x,
                       branch,
                       gain,
                       bias,
                       norm_entries(spec, width),
                       A(norm_divisor(spec, width)),
                       A(spec.eps)};
    visit_kind(spec.kind, [&]<NormKind K>() {
      visit_bool(a.rows.held, [&]<bool held>() {
        launch("norm_forward.rows", &forward_rows<K, held, T>, a.rows.shape(), stream_of(in.x), a);
      });
    });
  });
}

}  // namespace isonorm::gpu
