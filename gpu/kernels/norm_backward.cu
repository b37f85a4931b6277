// norm_backward: the gradients of rows, gain and bias.
//
// With x^ = (x - shift) / r a row's gradient is, for all kinds (h = gain dy; the sums run over the row):
//   dx = (u - mean(u) [layer only]) / r,  u = h - (x^ + c) S / divisor,  S = sum(h x^),  c = sum(x^) for crms, else 0.
// core/cpu/norm.cpp says why it is not mean(h).
//
// backward_rows: a team (gpu/rows.cuh) for each row. If the row fits into registers, reads dy and x (and dsum) once; if
// not, reads them again, from cache. Writes dx (and dbranch). If tensors are of f32 and of bf16, everything is computed
// in f32. With gain or bias, teams take rows in turn and keep the sums of their columns: at most kTeams teams with one
// warp, or fewer with several warps. If rows are held, the sums are in registers, and the warps of a block add them in
// order in shared memory. If not, each team keeps them in its own row of `partial`.
//
// add_partial: blocks of 32 columns x 16 threads add the rows of `partial`. They first add the rows of a block's teams,
// as the block does if its rows are held. The number of rows depends only on the shape.
#include <cmath>
#include <type_traits>

#include "core/kernels/norm.h"
#include "gpu/memory.h"
#include "gpu/rows.cuh"

namespace isonorm::gpu {
namespace {

template <class T> struct Backward {
  using A = acc_t<T>;
  Rows rows;
  Target<T> dx, dbranch;
  A* partial;  // [one for a block if rows are held, else for a team; 2, width]: sums for gain and bias
  Source<T> dy, dsum, x, gain;
  const A* stats;
  bool normalized;
  int64_t entries;
  A divisor;
};

// The sums of a thread's columns: in registers or in its team's row of a.partial.
template <class T, bool held> struct ColumnSums {
  using A = acc_t<T>;
  static constexpr int N = kPack<T>;
  A v[held ? 2 * kHeld * N : 1];
  A* to;  // the team's row of a.partial; used if the sums are not held

  __device__ __forceinline__ ColumnSums(const Team& team, const Backward<T>& a) {
    to = a.partial + team.number * 2 * a.rows.width;
    if constexpr (held)
      for (A& sum : v) sum = 0;
    else
      for_packs<T, held>(team, a.rows, [&](int64_t i, int n, int) {
        for (int k = 0; k < n; ++k) to[i + k] = to[a.rows.width + i + k] = 0;
      });
  }
  // Adds h x to the sums for the gain, and h to the sums for the bias.
  __device__ __forceinline__ void add(int64_t width, int64_t i, int n, int slot, const A (&h)[N], const A (&x)[N]) {
    for (int k = 0; k < N; ++k) {
      if constexpr (held) {
        v[slot * N + k] = std::fma(h[k], x[k], v[slot * N + k]);
        v[(kHeld + slot) * N + k] += h[k];
      } else if (k < n) {
        to[i + k] = std::fma(h[k], x[k], to[i + k]);
        to[width + i + k] += h[k];
      }
    }
  }
  // Writes the block's row of a.partial; all of its threads call it.
  __device__ __forceinline__ void finish(const Team& team, const Backward<T>& a) const {
    if constexpr (held) {
      struct Room {
        A v[2][32 * kHeld * N];
      };
      const int64_t w = a.rows.width;
      A* block = a.partial + blockIdx.x * 2 * w;
      const bool wide = a.rows.warps > 1;
      Room& room = shared<Room>();
      for (int turn = 0; turn < (wide ? 1 : warps()); ++turn) {
        if (turn > 0) __syncthreads();
        if (!wide && warp() != turn) continue;
        for_packs<T, true>(team, a.rows, [&](int64_t i, int, int slot) {
          for (int which = 0; which < 2; ++which)
            for (int k = 0; k < N; ++k) {
              A sum = v[(which * kHeld + slot) * N + k];
              if (turn > 0) sum += room.v[which][i + k];
              if (wide || turn == warps() - 1)
                block[which * w + i + k] = sum;
              else
                room.v[which][i + k] = sum;
            }
        });
      }
    }
  }
};
struct NoSums {};

template <NormKind K, bool affine, bool held, class T>
__global__ void __launch_bounds__(256, 1) backward_rows(const Backward<T> a) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  using P = Pack<T, N>;
  const Team team(a.rows);
  const bool packed = held || a.rows.packed;
  std::conditional_t<affine, ColumnSums<T, held>, NoSums> columns = [&] {
    if constexpr (affine)
      return ColumnSums<T, held>(team, a);
    else
      return NoSums();
  }();
  for (int64_t r = team.number; r < a.rows.count; r += team.count) {
    const int64_t row = r * a.rows.width;
    const auto read_x = [&](int64_t i, int n) { return load_part(a.x, row + i, n, packed); };
    const auto read_dy = [&](int64_t i, int n) { return load_part(a.dy, row + i, n, packed); };
    const auto read_dsum = [&](int64_t i, int n) { return load_part(a.dsum, row + i, n, packed); };
    RowPacks<T, held> xs, dys, dsums;
    xs.bring(team, a.rows, read_x);
    dys.bring(team, a.rows, read_dy);
    if (a.dsum) dsums.bring(team, a.rows, read_dsum);  // loaded while the sums are computed
    const A given = a.stats[2 * r], inverse_root = a.stats[2 * r + 1];
    const A shift = K == NormKind::layer && !a.normalized ? given : A(0), scale = a.normalized ? A(1) : inverse_root;
    const A c = K == NormKind::crms ? given * inverse_root : A(0);
    // x^ and h of a pack; h is 0 after the row's end.
    const auto prepare = [&](int64_t i, int n, int slot, A(&x)[N], A(&h)[N]) {
      const P px = xs.at(i, n, slot, read_x), pd = dys.at(i, n, slot, read_dy);
      for (int k = 0; k < N; ++k) {
        x[k] = (A(px.v[k]) - shift) * scale;
        h[k] = A(pd.v[k]);
      }
    };
    const auto weigh = [&](int64_t i, int n, A(&h)[N]) {
      if (!affine || !a.gain) return;
      const P gain = load_part(a.gain, i, n, packed);
      for (int k = 0; k < N; ++k) h[k] *= A(gain.v[k]);
    };
    constexpr int kSums = K == NormKind::layer ? 3 : 1;
    A sums[kSums] = {};  // of h x^; for layer also of h and of x^
    for_packs<T, held>(team, a.rows, [&](int64_t i, int n, int slot) {
      A x[N], h[N];
      prepare(i, n, slot, x, h);
      if constexpr (affine) columns.add(a.rows.width, i, n, slot, h, x);
      weigh(i, n, h);
      for (int k = 0; k < N; ++k) {
        sums[0] = std::fma(h[k], x[k], sums[0]);
        if constexpr (K == NormKind::layer) {
          sums[1] += h[k];
          sums[2] += k < n ? x[k] : A(0);
        }
      }
    });
    team_reduce<Plus>(team, sums, shared<TeamRoom<A, kSums>>());
    const A slope = sums[0] / a.divisor;
    A mean = 0;
    if constexpr (K == NormKind::layer) mean = std::fma(-sums[2], slope, sums[1]) / a.divisor;
    for_packs<T, held>(team, a.rows, [&](int64_t i, int n, int slot) {
      A x[N], h[N];
      prepare(i, n, slot, x, h);
      weigh(i, n, h);
      // The partial mean square does not see the entries after the leading ones.
      for (int k = 0; k < N; ++k) {
        const A inside = std::fma(-(x[k] + c), slope, h[k]) - mean;
        h[k] = (K != NormKind::rms || i + k < a.entries ? inside : h[k]) * inverse_root;
      }
      if (a.dsum) {
        const P d = dsums.at(i, n, slot, read_dsum);
        for (int k = 0; k < N; ++k) h[k] += A(d.v[k]);
      }
      P dx;
      for (int k = 0; k < N; ++k) dx.v[k] = T(h[k]);
      store_part(a.dx, row + i, dx, n, packed);
      if (a.dbranch) store_part(a.dbranch, row + i, dx, n, packed);
    });
  }
  if constexpr (affine) columns.finish(team, a);
}

// dgain and dbias [width] = the sums of partial [blocks, teams, 2, width] over blocks and teams.
template <class T, class A>
__global__ void __launch_bounds__(512)
    add_partial(Target<T> dgain, Target<T> dbias, const A* partial, int64_t blocks, int teams, int64_t width) {
  struct Room {
    A v[16][33];
  };
  Room& room = shared<Room>();
  const int64_t column = int64_t{blockIdx.x} * 32 + lane();
  A sum = 0;
  if (column < 2 * width)
    for (int64_t b = warp(); b < blocks; b += 16) {
      const A* of_block = partial + b * teams * 2 * width + column;
      A added = of_block[0];
      for (int t = 1; t < teams; ++t) added += of_block[t * 2 * width];
      sum += added;
    }
  room.v[warp()][lane()] = sum;
  __syncthreads();
  if (warp() > 0 || column >= 2 * width) return;
  for (int w = 1; w < 16; ++w) sum += room.v[w][lane()];
  const Target<T> to = column < width ? dgain : dbias;
  const int64_t i = column < width ? column : column - width;
  if (to.narrow)
    static_cast<bf16*>(to.rows)[i] = bf16(sum);
  else if (to)
    static_cast<T*>(to.rows)[i] = T(sum);
}

}  // namespace

void norm_backward(const NormSpec& spec, const kernels::NormGradients& out, const kernels::NormSaved& in) {
  constexpr int64_t kTeams = 2048;  // for all rows if columns are summed; fewer if teams have several warps
  const int64_t width = in.x.size(-1);
  if (width == 0) return;
  const DType dtype = dtype_of_rows({&in.dy, &in.dsum, &in.x, &in.gain, &out.dx, &out.dbranch, &out.dgain, &out.dbias});
  visit_floating(dtype, "norm", [&]<class T>() {
    using A = acc_t<T>;
    const bool affine = in.gain.defined() || out.dgain.defined() || out.dbias.defined();
    const Source<T> dy = source_of<T>(in.dy), dsum = source_of<T>(in.dsum), x = source_of<T>(in.x),
                    gain = source_of<T>(in.gain);
    const Target<T> dx = target_of<T>(out.dx), dbranch = target_of<T>(out.dbranch);
    const Rows rows = rows_of<T>(in.x, dy.rows, dsum.rows, x.rows, gain.rows, dx.rows, dbranch.rows);
    const int64_t most = affine ? kTeams / (rows.warps * rows.teams()) : int64_t{1} << 40;
    const int64_t blocks = std::min(ceil_div(rows.count, rows.teams()), most);
    const int teams = rows.held ? 1 : rows.teams();  // rows of `partial` for a block
    const Stream& stream = stream_of(in.x);
    const Scratch partial(in.x.device(), affine ? blocks * teams * 2 * width * static_cast<int64_t>(sizeof(A)) : 0);
    const Backward<T> a{rows,
                        dx,
                        dbranch,
                        partial.as<A>(),
                        dy,
                        dsum,
                        x,
                        gain,
                        in.stats.data<A>(),
                        in.normalized,
                        norm_entries(spec, width),
                        A(norm_divisor(spec, width))};
    if (rows.count > 0)
      visit_kind(spec.kind, [&]<NormKind K>() {
        visit_bool(rows.held, [&]<bool held>() {
          launch("norm_backward.rows", affine ? &backward_rows<K, true, held, T> : &backward_rows<K, false, held, T>,
                 rows.shape(most), stream, a);
        });
      });
    if (out.dgain.defined() || out.dbias.defined())
      launch("norm_backward.add_partial", &add_partial<T, A>, blocks_of(ceil_div(2 * width, 32), 512), stream,
             target_of<T>(out.dgain), target_of<T>(out.dbias), partial.as<const A>(), blocks, teams, width);
  });
}

}  // namespace isonorm::gpu
