// Rows of contiguous [rows, width] tensors: which threads share a row, and which elements of the row each thread has.
//
// Each row belongs to a team of threads. A team is a warp, with four teams in a block; if rows are wide, a team is a
// whole block. In a team of s threads, thread t has packs t, t + s, ... of kPack<T> elements each. If rows do not begin
// at multiples of 16 bytes, the same threads load their packs element by element, so the order of a sum depends only on
// the width.
//
// A kernel then has two forms, one for each way to load, and both must round alike. Therefore the compiler does not
// contract products and sums (cmake/gpu.cmake), and a sum of products calls std::fma.
#pragma once

#include <algorithm>
#include <limits>

#include "core/formulas/math/exp.h"
#include "core/formulas/norm_spec.h"
#include "core/formulas/round_up.h"
#include "gpu/block.cuh"
#include "gpu/launch.h"
#include "gpu/slots.h"

namespace isonorm::gpu {

constexpr int kHeld = 4;       // packs of a row that a thread can keep in registers
constexpr int kTeamWarps = 8;  // of a team, at most

// A kernel's argument.
struct Rows {
  int64_t count, width;
  int warps;    // warps of a team; if more than one, a block has one row
  bool packed;  // every row begins at a multiple of 16 bytes
  bool held;    // rows are packed, and no thread has more than kHeld packs of one

  int teams() const { return warps == 1 ? 4 : 1; }  // in a block
  // One team for each row, or `most` blocks whose teams take several rows in turn.
  Shape shape(int64_t most = int64_t{1} << 40) const {
    return blocks_of(std::min(ceil_div(count, teams()), most), 32 * warps * teams());
  }
};

// pointers: the tensors that have these rows; null: absent.
template <class T> Rows rows_of(int64_t count, int64_t width, const auto*... pointers) {
  constexpr int N = kPack<T>;
  const int64_t warps = ceil_div(width, 32 * kHeld * N);
  const bool packed = width % N == 0 && aligned(pointers...);
  return {count, width, static_cast<int>(std::clamp<int64_t>(warps, 1, kTeamWarps)), packed,
          packed && warps <= kTeamWarps};
}
// x [..., width], width > 0.
template <class T> Rows rows_of(const Tensor& x, const auto*... pointers) {
  return rows_of<T>(x.numel() / x.size(-1), x.size(-1), pointers...);
}

// The team of the calling thread, and the thread's place in it.
struct Team {
  int thread, size;
  int64_t number, count;  // this team and its first row; number of teams

  __device__ __forceinline__ explicit Team(const Rows& rows) {
    const bool wide = rows.warps > 1;
    thread = wide ? static_cast<int>(threadIdx.x) : lane();
    size = wide ? static_cast<int>(blockDim.x) : 32;
    number = wide ? int64_t{blockIdx.x} : int64_t{blockIdx.x} * warps() + warp();
    count = wide ? int64_t{gridDim.x} : int64_t{gridDim.x} * warps();
  }
};

template <class A, int M> struct TeamRoom { A v[kTeamWarps][M]; };

// Reduces each of v over the team; every thread gets the same values. All threads of the team call it.
template <class F, class A, int M>
__device__ __forceinline__ void team_reduce(const Team& team, A (&v)[M], TeamRoom<A, M>& room, F f = {}) {
  for (int m = 0; m < M; ++m) v[m] = warp_reduce<F>(v[m], f);
  if (team.size == 32) return;
  __syncthreads();  // the previous reduction has been read
  if (lane() == 0)
    for (int m = 0; m < M; ++m) room.v[warp()][m] = v[m];
  __syncthreads();
  for (int m = 0; m < M; ++m) v[m] = room.v[0][m];
  for (int w = 1; w < warps(); ++w)
    for (int m = 0; m < M; ++m) v[m] = f(v[m], room.v[w][m]);
}

// Loads the pack at p: n elements, then zeros.
template <int N, class T> __device__ __forceinline__ Pack<T, N> load_part(const T* p, int n, bool packed) {
  if (packed && n == N) return load<N>(p);
  Pack<T, N> pack;
  for (int k = 0; k < N; ++k) pack.v[k] = k < n ? p[k] : T(0);
  return pack;
}
template <class T> __device__ __forceinline__ Pack<T, kPack<T>> load_part(const T* p, int n, bool packed) {
  return load_part<kPack<T>>(p, n, packed);
}
template <class T, int N> __device__ __forceinline__ void store_part(T* p, const Pack<T, N>& pack, int n, bool packed) {
  if (packed && n == N) return store<N>(p, pack);
  for (int k = 0; k < N; ++k)
    if (k < n) p[k] = pack.v[k];
}

// Rows that are read or written together with rows of T: of dtype T or, if T is f32, of bf16.
template <class T> struct Source {
  const void* rows = nullptr;  // null: absent
  bool narrow = false;         // the rows are bf16

  __device__ __forceinline__ explicit operator bool() const { return rows != nullptr; }
};
template <class T> struct Target {
  void* rows = nullptr;
  bool narrow = false;

  // v with the rounding of its storage.
  __device__ __forceinline__ T rounded(acc_t<T> v) const { return narrow ? T(bf16(float(v))) : T(v); }

  __device__ __forceinline__ explicit operator bool() const { return rows != nullptr; }
};
template <class T> Source<T> source_of(const Tensor& t) {
  if (!t.defined()) return {};
  if (t.dtype() == dtype_of<T>) return {t.data<T>(), false};
  return {t.data<bf16>(), true};
}
template <class T> Target<T> target_of(const Tensor& t) {
  if (!t.defined()) return {};
  if (t.dtype() == dtype_of<T>) return {t.mutable_data<T>(), false};
  return {t.mutable_data<bf16>(), true};
}
// The rows' dtype of computation: the dtype that all defined tensors have, or f32 for a mixture.
inline DType dtype_of_rows(std::initializer_list<const Tensor*> tensors) {
  std::optional<DType> found;
  for (const Tensor* t : tensors)
    if (t->defined()) found = found.value_or(t->dtype()) == t->dtype() ? t->dtype() : DType::f32;
  return *found;
}

// Loads the pack at element i of the rows: n elements, then zeros.
template <class T>
__device__ __forceinline__ Pack<T, kPack<T>> load_part(const Source<T>& s, int64_t i, int n, bool packed) {
  if constexpr (std::is_same_v<T, float>)
    if (s.narrow) {
      constexpr int N = kPack<T>;
      const Pack<bf16, N> stored = load_part<N>(static_cast<const bf16*>(s.rows) + i, n, packed);
      Pack<T, N> pack;
      for (int k = 0; k < N; ++k) pack.v[k] = T(stored.v[k]);
      return pack;
    }
  return load_part(static_cast<const T*>(s.rows) + i, n, packed);
}
template <class T>
__device__ __forceinline__ void store_part(const Target<T>& to, int64_t i, const Pack<T, kPack<T>>& pack, int n,
                                           bool packed) {
  if constexpr (std::is_same_v<T, float>)
    if (to.narrow) {
      constexpr int N = kPack<T>;
      Pack<bf16, N> rounded;
      for (int k = 0; k < N; ++k) rounded.v[k] = bf16(pack.v[k]);
      return store_part(static_cast<bf16*>(to.rows) + i, rounded, n, packed);
    }
  store_part(static_cast<T*>(to.rows) + i, pack, n, packed);
}

// Calls f(i, n, slot) for each pack of the calling thread. The pack begins at element i of the row and has n of its
// elements; slot is its number in the thread (0 if packs are not held).
template <class T, bool held, class F>
__device__ __forceinline__ void for_packs(const Team& team, const Rows& rows, const F& f) {
  constexpr int N = kPack<T>;
  if constexpr (held) {
#pragma unroll
    for (int slot = 0; slot < kHeld; ++slot) {
      const int i = (team.thread + slot * team.size) * N;
      if (i < rows.width) f(int64_t{i}, N, slot);
    }
  } else {
    for (int64_t i = int64_t{team.thread} * N; i < rows.width; i += int64_t{team.size} * N)
      f(i, static_cast<int>(rows.width - i < N ? rows.width - i : N), 0);
  }
}

// The calling thread's packs of a row: in registers if they are held, else loaded again for each pass. read(i, n):
// loads the pack at element i.
template <class T, bool held> struct RowPacks {
  Pack<T, kPack<T>> kept[held ? kHeld : 1];

  template <class Read> __device__ __forceinline__ void bring(const Team& team, const Rows& rows, const Read& read) {
    if constexpr (held) for_packs<T, true>(team, rows, [&](int64_t i, int n, int slot) { kept[slot] = read(i, n); });
  }
  template <class Read>
  __device__ __forceinline__ Pack<T, kPack<T>> at(int64_t i, int n, int slot, const Read& read) const {
    if constexpr (held)
      return kept[slot];
    else
      return read(i, n);
  }
};

// e^x for x <= 0, NaN for NaN.
template <class A> __device__ __forceinline__ A exp_below(A x) {
  return math::exp_nonpositive(math::clamp_below(x, math::pick<A>(-104, -746)));
}

// Offset of the first input of output e in a reduction of [outer, length, inner]. Its inputs are `inner` elements
// apart.
__device__ __forceinline__ int64_t first_of(int64_t e, int64_t length, int64_t inner) {
  return e / inner * length * inner + e % inner;
}

// Calls f.operator()<value>().
template <class F> void visit_bool(bool value, const F& f) {
  value ? f.template operator()<true>() : f.template operator()<false>();
}

// Calls f.operator()<kind>() with the formula of the norm's kind: the isometric form is RMSNorm with another
// divisor.
template <class F> void visit_kind(NormKind kind, const F& f) {
  if (kind == NormKind::layer) return f.template operator()<NormKind::layer>();
  if (kind == NormKind::crms) return f.template operator()<NormKind::crms>();
  check(kind == NormKind::rms || kind == NormKind::crms_isometric, "norm: ", name_of(kind), " has no formula here");
  f.template operator()<NormKind::rms>();
}

}  // namespace isonorm::gpu
