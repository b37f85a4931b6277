// softmax, softmax_backward over the last dimension of contiguous rows.
//
// A team (gpu/rows.cuh) for each row. Rows that fit stay in registers: each element is read once and written once.
// Wider or unaligned rows are read again, from cache. Exponentials are computed twice rather than stored: bandwidth is
// the bottleneck.
#include "core/formulas/math.h"
#include "core/kernels/loss.h"
#include "gpu/rows.cuh"

namespace isonorm::gpu {
namespace {

template <bool held, class T>
__global__ void __launch_bounds__(256) softmax_rows(T* y, const T* x, Rows rows, bool log) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  const Team team(rows);
  if (team.number >= rows.count) return;  // the whole team leaves
  const bool packed = held || rows.packed;
  const int64_t row = team.number * rows.width;
  const auto read = [&](int64_t i, int n) { return load_part(x + row + i, n, packed); };
  RowPacks<T, held> mine;
  mine.bring(team, rows, read);
  TeamRoom<A, 1>& room = shared<TeamRoom<A, 1>>();
  A top[1] = {-std::numeric_limits<A>::infinity()}, sum[1] = {0};
  for_packs<T, held>(team, rows, [&](int64_t i, int n, int slot) {
    const auto p = mine.at(i, n, slot, read);
    for (int k = 0; k < N; ++k)
      if (k < n) top[0] = Larger()(A(p.v[k]), top[0]);
  });
  team_reduce<Larger>(team, top, room);
  for_packs<T, held>(team, rows, [&](int64_t i, int n, int slot) {
    const auto p = mine.at(i, n, slot, read);
    for (int k = 0; k < N; ++k)
      if (k < n) sum[0] += exp_below(A(p.v[k]) - top[0]);
  });
  team_reduce<Plus>(team, sum, room);
  const A log_sum = math::log(sum[0]), inverse = 1 / sum[0];
  for_packs<T, held>(team, rows, [&](int64_t i, int n, int slot) {
    auto p = mine.at(i, n, slot, read);
    for (int k = 0; k < N; ++k) {
      const A v = A(p.v[k]) - top[0];
      p.v[k] = T(log ? v - log_sum : exp_below(v) * inverse);
    }
    store_part(y + row + i, p, n, packed);
  });
}

template <bool held, class T>
__global__ void __launch_bounds__(256) softmax_gradient_rows(T* dx, const T* g, const T* y, Rows rows, bool log) {
  using A = acc_t<T>;
  constexpr int N = kPack<T>;
  const Team team(rows);
  if (team.number >= rows.count) return;  // the whole team leaves
  const bool packed = held || rows.packed;
  const int64_t row = team.number * rows.width;
  const auto read_g = [&](int64_t i, int n) { return load_part(g + row + i, n, packed); };
  const auto read_y = [&](int64_t i, int n) { return load_part(y + row + i, n, packed); };
  RowPacks<T, held> gs, ys;
  gs.bring(team, rows, read_g);
  ys.bring(team, rows, read_y);
  A sum[1] = {0};
  for_packs<T, held>(team, rows, [&](int64_t i, int n, int slot) {
    const auto pg = gs.at(i, n, slot, read_g), py = ys.at(i, n, slot, read_y);
    for (int k = 0; k < N; ++k) sum[0] += log ? A(pg.v[k]) : A(pg.v[k]) * A(py.v[k]);  // 0 after the row's end
  });
  team_reduce<Plus>(team, sum, shared<TeamRoom<A, 1>>());
  for_packs<T, held>(team, rows, [&](int64_t i, int n, int slot) {
    const auto pg = gs.at(i, n, slot, read_g), py = ys.at(i, n, slot, read_y);
    Pack<T, N> d;
    for (int k = 0; k < N; ++k) {
      const A dy(pg.v[k]), p(py.v[k]);
      d.v[k] = T(log ? dy - exp_below(p) * sum[0] : p * (dy - sum[0]));
    }
    store_part(dx + row + i, d, n, packed);
  });
}

}  // namespace

void softmax(const Tensor& out, const Tensor& x, bool log) {
  if (out.numel() == 0) return;
  visit_floating(x.dtype(), "softmax", [&]<class T>() {
    const T* px = x.data<T>();
    T* py = write<T>(out);
    const Rows rows = rows_of<T>(x, px, py);
    visit_bool(rows.held, [&]<bool held>() {
      launch("softmax.rows", &softmax_rows<held, T>, rows.shape(), stream_of(x), py, px, rows, log);
    });
  });
}

void softmax_backward(const Tensor& dx, const Tensor& g, const Tensor& y, bool log) {
  if (dx.numel() == 0) return;
  visit_floating(y.dtype(), "softmax", [&]<class T>() {
    const T *pg = g.data<T>(), *py = y.data<T>();
    T* pd = write<T>(dx);
    const Rows rows = rows_of<T>(y, pg, py, pd);
    visit_bool(rows.held, [&]<bool held>() {
      launch("softmax_backward.rows", &softmax_gradient_rows<held, T>, rows.shape(), stream_of(y), pd, pg, py, rows,
             log);
    });
  });
}

}  // namespace isonorm::gpu
