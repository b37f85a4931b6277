// group_norm: norms of x [outer, length, groups, width], with a statistic for each (outer, group).
//
// moments, gradient_sums: a block of 32 channels x 8 threads for each piece of kPiece rows; moments reads its rows
// twice, the second time from cache.
// group_stats, group_coefficients: a warp for each (outer, group) combines pieces and channels.
// apply, apply_gradient: a thread for each pack of 16 bytes of neighbouring channels, or for each element. Forward
// reads x twice and writes y; backward reads x and dy twice and writes dx. The order of the sums depends only on the
// shape.
#include "core/kernels/norm.h"

#include "gpu/columns.cuh"
#include "gpu/kernels/window.cuh"
#include "gpu/launch.h"
#include "gpu/memory.h"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

using kernels::GroupNormShape;

constexpr int64_t kPiece = 256;

// The rows and the channel of the calling thread, by the strip, piece and outer index of its block.
struct Columns {
  int64_t outer, piece, channel, begin, end;
  bool inside;

  __device__ __forceinline__ Columns(const GroupNormShape& s, int64_t pieces, int64_t strips, int64_t length) {
    const int64_t b = blockIdx.x / strips;
    channel = blockIdx.x % strips * 32 + lane();
    outer = b / pieces, piece = b % pieces;
    begin = piece * kPiece < length ? piece * kPiece : length;
    end = begin + kPiece < length ? begin + kPiece : length;
    inside = channel < s.channels();
  }
};

__device__ __forceinline__ int64_t rows_of_piece(int64_t length, int64_t piece) {
  const int64_t left = length - piece * kPiece;
  return left < 0 ? 0 : left < kPiece ? left : kPiece;
}

// The moments of a channel in a piece, as in core/cpu/group_norm.cpp: the mean is mean + rest, 0 unless centred;
// kSquare is the sum of squares around it.
enum Moment { kMean, kRest, kSquare, kMoments };

// moments [outer, pieces, kMoments, channels] of the leading rows of a piece.
template <class T>
__global__ void __launch_bounds__(256)
    moments_of_pieces(acc_t<T>* moments, const T* x, GroupNormShape s, int64_t pieces, int64_t strips) {
  using A = acc_t<T>;
  const Columns t(s, pieces, strips, s.leading);
  const T* p = x + t.outer * s.length * s.channels() + t.channel;
  A mean = 0, rest = 0, square = 0;
  if (s.centred) {
    if (t.inside)
      for (int64_t r = t.begin + warp(); r < t.end; r += 8) mean += A(p[r * s.channels()]);
    mean = reduce_column<Plus>(mean);
    if (t.end > t.begin) mean /= static_cast<A>(t.end - t.begin);
  }
  if (t.inside)
    for (int64_t r = t.begin + warp(); r < t.end; r += 8) {
      const A apart = A(p[r * s.channels()]) - mean;
      square += apart * apart;
      rest += apart;
    }
  square = reduce_column<Plus>(square);
  rest = reduce_column<Plus>(rest);
  if (warp() != 0 || !t.inside) return;
  const A mean_rest = s.centred && t.end > t.begin ? rest / static_cast<A>(t.end - t.begin) : A(0);
  A* to = moments + (t.outer * pieces + t.piece) * kMoments * s.channels() + t.channel;
  to[kMean * s.channels()] = mean;
  to[kRest * s.channels()] = mean_rest;
  to[kSquare * s.channels()] = square - rest * mean_rest;
}

// Combines the moments like core/cpu/group_norm.cpp.
template <class A>
__global__ void __launch_bounds__(128) group_stats(A* stats, const A* moments, GroupNormShape s, int64_t pieces) {
  const int64_t number = int64_t{blockIdx.x} * warps() + warp();
  if (number >= s.outer * s.groups) return;
  const int64_t channels = s.channels(), step = kMoments * channels;
  const A* first = moments + number / s.groups * pieces * step + number % s.groups * s.width;
  const auto distance = [&](const A* at) { return at[kMean * channels] - first[0] + at[kRest * channels]; };
  const A n = static_cast<A>(s.entries());
  A mean = 0, square = 0;
  for (int64_t i = lane(); i < pieces * s.width; i += 32)
    mean += static_cast<A>(rows_of_piece(s.leading, i / s.width)) * distance(first + i / s.width * step + i % s.width);
  mean = warp_reduce<Plus>(mean) / n;
  for (int64_t i = lane(); i < pieces * s.width; i += 32) {
    const A* at = first + i / s.width * step + i % s.width;
    const A apart = distance(at) - mean;
    square += at[kSquare * channels] + static_cast<A>(rows_of_piece(s.leading, i / s.width)) * apart * apart;
  }
  square = warp_reduce<Plus>(square) / n;
  if (lane() != 0) return;
  A* stat = stats + number * s.kStats;
  stat[0] = first[0] + mean;
  stat[1] = square;
  stat[2] = s.inverse_root(square);
  stat[3] = mean - (stat[0] - first[0]);
}

// y = (x - mean) / root gain + bias. Thread e has pack e of `count`.
template <class T, int N, class I>
__global__ void __launch_bounds__(256) apply(T* y, const T* x, const acc_t<T>* stats, const acc_t<T>* gain,
                                             const acc_t<T>* bias, GroupNormShape s, int64_t count) {
  using A = acc_t<T>;
  if (element() >= count) return;
  const I e = static_cast<I>(element()) * N, channels = I(s.channels()), row = e / channels, c = e - row * channels;
  const A* stat = stats + int64_t(row / I(s.length)) * s.groups * s.kStats;
  Pack<T, N> v = load<N>(x + int64_t(e));
  for (int k = 0; k < N; ++k) {
    const A* of = stat + int64_t((c + k) / I(s.width)) * s.kStats;
    const A scale = of[2] * (gain ? gain[c + k] : A(1));
    v.v[k] = T(((A(v.v[k]) - of[0]) - of[3]) * scale + (bias ? bias[c + k] : A(0)));
  }
  store<N>(y + int64_t(e), v);
}

// sums [outer, pieces, 2, channels] of dy and of dy (x - mean).
template <class T>
__global__ void __launch_bounds__(256) gradient_sums(acc_t<T>* sums, const T* dy, const T* x, const acc_t<T>* stats,
                                                     GroupNormShape s, int64_t pieces, int64_t strips) {
  using A = acc_t<T>;
  const Columns t(s, pieces, strips, s.length);
  const int64_t first = t.outer * s.length * s.channels() + t.channel;
  A plain = 0, product = 0;
  if (t.inside) {
    const A* stat = stats + (t.outer * s.groups + t.channel / s.width) * s.kStats;
    for (int64_t r = t.begin + warp(); r < t.end; r += 8) {
      const A d = A(dy[first + r * s.channels()]);
      plain += d;
      product += d * ((A(x[first + r * s.channels()]) - stat[0]) - stat[3]);
    }
  }
  plain = reduce_column<Plus>(plain);
  product = reduce_column<Plus>(product);
  if (warp() != 0 || !t.inside) return;
  A* to = sums + (t.outer * pieces + t.piece) * 2 * s.channels() + t.channel;
  to[0] = plain;
  to[s.channels()] = product;
}

// Adds the pieces of `sums` into the first: a thread for each (outer, part, channel).
template <class A>
__global__ void __launch_bounds__(256) add_pieces(A* sums, int64_t outer, int64_t pieces, int64_t width) {
  if (element() >= outer * width) return;
  A* p = sums + element() / width * pieces * width + element() % width;
  A sum = 0;
  for (int64_t k = 0; k < pieces; ++k) sum += p[k * width];
  *p = sum;
}

// coefficients [outer, groups, 2]: dx = dy gain / root - (x - mean) coefficient 0 - coefficient 1.
template <class A>
__global__ void __launch_bounds__(128) group_coefficients(A* coefficients, const A* sums, const A* stats, const A* gain,
                                                          GroupNormShape s, int64_t pieces) {
  const int64_t number = int64_t{blockIdx.x} * warps() + warp();
  if (number >= s.outer * s.groups) return;
  const int64_t begin = number % s.groups * s.width;
  const A* p = sums + number / s.groups * pieces * 2 * s.channels() + begin;
  A plain = 0, product = 0;
  for (int64_t c = lane(); c < s.width; c += 32) {
    const A scale = gain ? gain[begin + c] : A(1);
    plain += scale * p[c];
    product += scale * p[s.channels() + c];
  }
  plain = warp_reduce<Plus>(plain);
  product = warp_reduce<Plus>(product);
  if (lane() != 0) return;
  const A* stat = stats + number * s.kStats;
  coefficients[number * 2] = product * s.slope(stat[1], stat[2]);
  coefficients[number * 2 + 1] = s.centred ? plain * stat[2] / static_cast<A>(s.entries()) : A(0);
}

template <class T, int N, class I>
__global__ void __launch_bounds__(256)
    apply_gradient(T* dx, const T* dy, const T* x, const acc_t<T>* stats, const acc_t<T>* coefficients,
                   const acc_t<T>* gain, GroupNormShape s, int64_t count) {
  using A = acc_t<T>;
  if (element() >= count) return;
  const I e = static_cast<I>(element()) * N, channels = I(s.channels()), row = e / channels, c = e - row * channels;
  const I outer = row / I(s.length);
  const A counts = int64_t(row - outer * I(s.length)) < s.leading ? A(1) : A(0);
  const Pack<T, N> d = load<N>(dy + int64_t(e));
  Pack<T, N> v = load<N>(x + int64_t(e));
  for (int k = 0; k < N; ++k) {
    const int64_t group = int64_t(outer) * s.groups + int64_t((c + k) / I(s.width));
    const A* stat = stats + group * s.kStats;
    const A scale = stat[2] * (gain ? gain[c + k] : A(1)), apart = (A(v.v[k]) - stat[0]) - stat[3];
    v.v[k] = T(A(d.v[k]) * scale - counts * apart * coefficients[group * 2] - coefficients[group * 2 + 1]);
  }
  store<N>(dx + int64_t(e), v);
}

// dgain and dbias, each if it is not null: a thread for each channel adds the sums over all outer indices.
template <class A>
__global__ void __launch_bounds__(256)
    add_outer(A* dgain, A* dbias, const A* sums, const A* stats, GroupNormShape s, int64_t pieces) {
  const int64_t c = element();
  if (c >= s.channels()) return;
  A gain = 0, bias = 0;
  for (int64_t o = 0; o < s.outer; ++o) {
    const A* p = sums + o * pieces * 2 * s.channels() + c;
    bias += p[0];
    gain += p[s.channels()] * stats[(o * s.groups + c / s.width) * s.kStats + 2];
  }
  if (dgain) dgain[c] = gain;
  if (dbias) dbias[c] = bias;
}

// Calls f.operator()<N, I>(count): a thread for each of `count` packs of N elements, numbered by type I.
template <class T, class F> void visit_elements(const GroupNormShape& s, const Tensor& x, bool is_aligned, const F& f) {
  visit_index(x.numel(), [&]<class I>() {
    if (is_aligned && s.channels() % kPack<T> == 0)
      f.template operator()<kPack<T>, I>(x.numel() / kPack<T>);
    else
      f.template operator()<1, I>(x.numel());
  });
}

}  // namespace

void group_norm_forward(const GroupNormShape& s, const kernels::GroupNormOutputs& out,
                        const kernels::GroupNormInputs& in) {
  visit_floating(in.x.dtype(), "group_norm", [&]<class T>() {
    using A = acc_t<T>;
    const Stream& stream = stream_of(in.x);
    const int64_t pieces = ceil_div(s.leading, kPiece), strips = ceil_div(s.channels(), 32);
    const Scratch moments(in.x.device(), s.outer * pieces * kMoments * s.channels() * static_cast<int64_t>(sizeof(A)));
    T* y = write<T>(out.y);
    A* stats = write<A>(out.stats);
    const T* x = in.x.data<T>();
    launch("group_norm.moments", &moments_of_pieces<T>, blocks_of(s.outer * pieces * strips, 256), stream,
           moments.as<A>(), x, s, pieces, strips);
    launch("group_norm.stats", &group_stats<A>, blocks_of(ceil_div(s.outer * s.groups, 4), 128), stream, stats,
           moments.as<const A>(), s, pieces);
    visit_elements<T>(s, in.x, aligned(x, y), [&]<int N, class I>(int64_t count) {
      launch("group_norm.apply", &apply<T, N, I>, one_each(count), stream, y, x, stats, read_or_null<A>(in.gain),
             read_or_null<A>(in.bias), s, count);
    });
  });
}

void group_norm_backward(const GroupNormShape& s, const kernels::GroupNormGradients& out,
                         const kernels::GroupNormSaved& in) {
  visit_floating(in.x.dtype(), "group_norm", [&]<class T>() {
    using A = acc_t<T>;
    const Stream& stream = stream_of(in.x);
    const int64_t pieces = ceil_div(s.length, kPiece), strips = ceil_div(s.channels(), 32), width = 2 * s.channels();
    const auto size = static_cast<int64_t>(sizeof(A));
    const Scratch sums(in.x.device(), s.outer * pieces * width * size),
        coefficients(in.x.device(), s.outer * s.groups * 2 * size);
    T* dx = write<T>(out.dx);
    const T *dy = in.dy.data<T>(), *x = in.x.data<T>();
    const A *stats = in.stats.data<A>(), *gain = read_or_null<A>(in.gain);
    launch("group_norm_backward.sums", &gradient_sums<T>, blocks_of(s.outer * pieces * strips, 256), stream,
           sums.as<A>(), dy, x, stats, s, pieces, strips);
    if (pieces > 1)
      launch("group_norm_backward.pieces", &add_pieces<A>, one_each(s.outer * width), stream, sums.as<A>(), s.outer,
             pieces, width);
    launch("group_norm_backward.coefficients", &group_coefficients<A>, blocks_of(ceil_div(s.outer * s.groups, 4), 128),
           stream, coefficients.as<A>(), sums.as<const A>(), stats, gain, s, pieces);
    visit_elements<T>(s, in.x, aligned(x, dy, dx), [&]<int N, class I>(int64_t count) {
      launch("group_norm_backward.apply", &apply_gradient<T, N, I>, one_each(count), stream, dx, dy, x, stats,
             coefficients.as<const A>(), gain, s, count);
    });
    if (out.dgain.defined() || out.dbias.defined())
      launch("group_norm_backward.gain", &add_outer<A>, one_each(s.channels()), stream, write_or_null<A>(out.dgain),
             write_or_null<A>(out.dbias), sums.as<const A>(), stats, s, pieces);
  });
}

}  // namespace isonorm::gpu
