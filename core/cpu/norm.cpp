// Normalization by rows. Forward and backward are each one pass over memory: a row stays in the first-level cache
// between its own passes.
//
// With x^ = (x - shift) / r, a row's gradient is, for all kinds (h = gain dy; the sums run over the row):
//   dx = (u - mean(u) [layer only]) / r,   u = h - (x^ + c) S / divisor,
//   S = sum(h x^),   c = sum(x^) for crms, else 0.
// mean(u) is not mean(h): the mean that layer subtracts from x is rounded, so mean(x^) is this rounding error and not
// 0. A row of dx sums to 0 however far x is from 0.
#include "core/kernels/norm.h"

#include <cmath>

#include "core/cpu/nontemporal.h"
#include "core/cpu/target.h"
#include "core/cpu/workspace.h"
#include "core/formulas/round_up.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

// Parameters that all rows of a call share.
template <class A> struct Shape {
  int64_t rows, width, entries;
  A divisor, eps;
  A share = 1 / divisor;  // a product is faster than a quotient
};
template <class A> Shape<A> shape_of(const NormSpec& spec, const Tensor& x) {
  const int64_t width = x.size(-1);
  return {x.numel() / std::max<int64_t>(1, width), width, norm_entries(spec, width), A(norm_divisor(spec, width)),
          A(spec.eps)};
}

// Blocks of rows for kernels without sums over rows.
template <class A> Partition row_blocks(const Shape<A>& s) {
  return even_blocks(s.rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, s.width)));
}

// Blocks of rows for kernels with sums over rows. The blocks depend only on the shape and are added in order, so the
// bits do not depend on the number of threads.
Partition summed_blocks(int64_t rows) { return even_blocks(rows, std::max<int64_t>(16, (rows + 31) / 32)); }

template <class T> const T* data_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }
template <class T> T* mutable_or_null(const Tensor& t) { return t.defined() ? t.mutable_data<T>() : nullptr; }

// Prefetches the next row of an operand while this row makes its passes in cache. Called at element i of pass `pass` of
// `passes`.
template <bool far> struct Ahead {
  int64_t width;
  template <class T> ISO_HD void operator()(const T* row, int64_t i, int pass, int passes) const {
    if constexpr (far) bring(row + width + (pass * width + i) / passes);
  }
};
// Shorter rows are left to the processor, which prefetches that far by itself.
constexpr int64_t kFar = 256;

// The row to normalize: x, or x + branch as stored in S (void: no branch). Each pass over the row computes it again.
// Reading it back would wait for the stores if registers overlap them.
template <class S, bool far, class A, class T> struct Source {
  const T *x, *branch;
  Ahead<far> ahead;
  template <class Lanes> ISO_HD Vec<A> load(int64_t i, const Lanes& lanes, int pass, int passes) const {
    ahead(x, i, pass, passes);
    if constexpr (std::is_void_v<S>) return lanes.load(x + i);
    ahead(branch, i, pass, passes);
    return round_lanes<S>(lanes.load(x + i) + lanes.load(branch + i));
  }
};

// Number of passes over a row of the source until its result is written.
constexpr int passes_of(NormKind kind) { return kind == NormKind::layer ? 3 : 2; }

// Shift and 1/root of a row. The variance is taken around the mean in a second pass: E[x^2] - mean^2 would cancel.
template <NormKind K, class A, class From> ISO_HD std::array<A, 2> row_stats(const From& from, const Shape<A>& s) {
  constexpr int passes = passes_of(K);
  A shift = 0, squares;
  if constexpr (K == NormKind::layer) {
    shift = sum_row<A, 1>(s.width, [&](int64_t i, auto lanes,
                                       Vec<A>* acc) { acc[0] += lanes.keep(from.load(i, lanes, 0, passes)); })[0] /
            s.divisor;
    squares = sum_row<A, 1>(s.width, [&](int64_t i, auto lanes, Vec<A>* acc) {
      const Vec<A> v = lanes.keep(from.load(i, lanes, 1, passes) - shift);
      acc[0] += v * v;
    })[0];
  } else if constexpr (K == NormKind::crms) {
    const auto sums = sum_row<A, 2>(s.width, [&](int64_t i, auto lanes, Vec<A>* acc) {
      const Vec<A> v = lanes.keep(from.load(i, lanes, 0, passes));
      acc[0] += v;
      acc[1] += v * v;
    });
    shift = sums[0];
    squares = sums[1] + shift * shift;
  } else {
    squares = sum_row<A, 1>(s.entries, [&](int64_t i, auto lanes, Vec<A>* acc) {
      const Vec<A> v = lanes.keep(from.load(i, lanes, 0, passes));
      acc[0] += v * v;
    })[0];
  }
  return {shift, 1 / std::sqrt(squares / s.divisor + s.eps)};
}

template <NormKind K, class S, bool far, class T>
void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in) {
  using A = acc_t<T>;
  constexpr bool add = !std::is_void_v<S>;
  const Shape<A> s = shape_of<A>(spec, in.x);
  const T *x = in.x.data<T>(), *branch = data_or_null<T>(in.branch);
  const T *gain = data_or_null<T>(in.gain), *bias = data_or_null<T>(in.bias);
  using Sum = std::conditional_t<add, S, T>;
  T* y = out.y.mutable_data<T>();
  Sum* sum = mutable_or_null<Sum>(out.sum);
  A* stats = out.stats.mutable_data<A>();
  const int64_t w = s.width;
  const bool nontemporal = passes_caches<T>(out.y, w) && (!add || passes_caches<Sum>(out.sum, w));
  parallel_for(row_blocks(s), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Source<S, far, A, T> from{x + r * w, add ? branch + r * w : nullptr, {w}};
      const auto [shift, scale] = row_stats<K>(from, s);
      stats[2 * r] = shift;
      stats[2 * r + 1] = scale;
      const A mean = K == NormKind::layer ? shift : A(0), factor = scale;
      for_results<A>(nontemporal, y + r * w, w, [&](int64_t i, auto lanes) {
        Vec<A> v = from.load(i, lanes, passes_of(K) - 1, passes_of(K));
        if constexpr (add) lanes.store(sum + r * w + i, v);
        v = (v - mean) * factor;
        if (gain) v *= lanes.load(gain + i);
        if (bias) v += lanes.load(bias + i);
        lanes.store(y + r * w + i, v);
      });
    }
    fence_nontemporal(nontemporal);
  });
}

// The operands of a row's gradient; x^ = (x - shift) scale.
template <bool far, class A, class T> struct Row {
  const T *dy, *dsum, *x;
  A shift, scale, inverse_root;
  Ahead<far> ahead;
  bool nontemporal;  // whether its gradient is stored past the caches

  // Prefetches the next row, in the first and the second of the two passes over this one.
  ISO_HD void bring_next(int64_t i, int pass) const {
    ahead(x, i, pass, 2);
    ahead(dy, i, pass, 2);
    if (dsum) ahead(dsum, i, pass, 2);
  }
};

// Writes dx for n entries of a row.
template <bool far, class A, class T>
ISO_HD void write_gradient(T* __restrict dx, const Row<far, A, T>& row, const T* gain, A mean, A c, A slope,
                           int64_t n) {
  for_results<A>(row.nontemporal, dx, n, [&](int64_t i, auto lanes) {
    row.bring_next(i, 1);
    const Vec<A> x = (lanes.load(row.x + i) - row.shift) * row.scale;
    Vec<A> h = lanes.load(row.dy + i);
    if (gain) h *= lanes.load(gain + i);
    Vec<A> g = ((h - (x + c) * slope) - mean) * row.inverse_root;
    if (row.dsum) g += lanes.load(row.dsum + i);
    lanes.store(dx + i, g);
  });
}

// Position in a row of partial sums for the register that begins at element i of a row. The last register overlaps the
// one before it. It gets lanes of its own, so that no sum is loaded that was just stored in two parts.
template <class A> ISO_HD int64_t place(int64_t i) { return round_up(i, kLanes<A>); }

template <class A> ISO_HD void add_to(A* sum, Vec<A> v) { store_lanes<A>(sum, load_lanes<A>(sum) + v); }

// Computes dx of a row, and the row's contributions to the gradients of gain and bias.
template <NormKind K, bool affine, bool far, class A, class T>
ISO_HD void gradient_row(T* dx, A* dgain, A* dbias, const Row<far, A, T>& row, const T* gain, A c, const Shape<A>& s) {
  constexpr bool centred = K == NormKind::layer;
  constexpr int kSums = centred ? 3 : 1;
  const auto sums = sum_row<A, kSums>(s.width, [&](int64_t i, auto lanes, Vec<A>* acc) {
    row.bring_next(i, 0);
    const Vec<A> dy = lanes.keep(lanes.load(row.dy + i)), x = (lanes.load(row.x + i) - row.shift) * row.scale;
    Vec<A> h = dy;
    if constexpr (affine) {
      if (gain) h *= lanes.load(gain + i);
      add_to<A>(dgain + place<A>(i), dy * x);
      add_to<A>(dbias + place<A>(i), dy);
    }
    acc[0] += h * x;
    if constexpr (centred) acc[1] += h, acc[2] += lanes.keep(x);
  });
  const A slope = sums[0] * s.share;
  A mean = 0;
  if constexpr (centred) mean = (sums[1] - slope * sums[2]) * s.share;
  write_gradient(dx, row, gain, mean, c, slope, s.entries);
  if (s.entries == s.width) return;
  // Entries outside of the partial mean square.
  const int64_t k = s.entries;
  Row<far, A, T> rest = row;
  rest.dy += k, rest.x += k;
  if (row.dsum) rest.dsum += k;
  write_gradient(dx + k, rest, gain ? gain + k : nullptr, A(0), A(0), A(0), s.width - k);
}

template <NormKind K, bool affine, bool far, class T>
void backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in) {
  using A = acc_t<T>;
  const Shape<A> s = shape_of<A>(spec, in.x);
  const T *dy = in.dy.data<T>(), *dsum = data_or_null<T>(in.dsum), *x = in.x.data<T>(),
          *gain = data_or_null<T>(in.gain);
  const A* stats = in.stats.data<A>();
  T* dx = out.dx.mutable_data<T>();
  const int64_t w = s.width, stride = round_up(w, 16);  // entries of a row of sums: whole registers
  const Partition blocks = affine ? summed_blocks(s.rows) : row_blocks(s);
  const Workspace<A> sums(affine ? blocks.count * 2 * stride : 0);
  A* partial = sums.data();
  const bool nontemporal = s.entries == w && passes_caches<T>(out.dx, w);
  parallel_for(blocks, [&](int64_t begin, int64_t end, int64_t block) {
    A *dgain = nullptr, *dbias = nullptr;
    if constexpr (affine) {
      dgain = partial + block * 2 * stride;
      dbias = dgain + stride;
      std::fill_n(dgain, 2 * stride, A(0));
    }
    for (int64_t r = begin; r < end; ++r) {
      const A shift = stats[2 * r], inverse_root = stats[2 * r + 1];
      const Row<far, A, T> row{dy + r * w,
                               dsum ? dsum + r * w : nullptr,
                               x + r * w,
                               K == NormKind::layer && !in.normalized ? shift : A(0),
                               in.normalized ? A(1) : inverse_root,
                               inverse_root,
                               {w},
                               nontemporal};
      gradient_row<K, affine>(dx + r * w, dgain, dbias, row, gain, K == NormKind::crms ? shift * inverse_root : A(0),
                              s);
    }
    fence_nontemporal(nontemporal);
  });
  if constexpr (!affine) return;
  T* to[2] = {mutable_or_null<T>(out.dgain), mutable_or_null<T>(out.dbias)};
  for (int which : {0, 1}) {
    if (!to[which]) continue;
    for_lanes<A>(w, [&](int64_t i, auto lanes) {
      Vec<A> sum{};
      for (int64_t b = 0; b < blocks.count; ++b) sum += load_lanes<A>(partial + (2 * b + which) * stride + place<A>(i));
      lanes.store(to[which] + i, lanes.choose(sum, lanes.load(to[which] + i)));
    });
  }
}

// f.operator()<kind>() with the formula that belongs to the kind. The isometric form is RMSNorm with another divisor.
template <class F> void visit_kind(NormKind kind, const F& f) {
  switch (kind) {
    case NormKind::layer:
      return f.template operator()<NormKind::layer>();
    case NormKind::crms:
      return f.template operator()<NormKind::crms>();
    case NormKind::rms:
    case NormKind::crms_isometric:
      return f.template operator()<NormKind::rms>();
    case NormKind::none:
      break;
  }
  check(false, "norm: ", name_of(kind), " has no formula here");
}

// f.operator()<value>()
template <class F> void visit_bool(bool value, const F& f) {
  value ? f.template operator()<true>() : f.template operator()<false>();
}

// f.operator()<T, kind, far>() for a norm of x.
template <class F> void visit(const NormSpec& spec, const Tensor& x, const F& f) {
  visit_floating(x.dtype(), "norm", [&]<class T>() {
    visit_kind(spec.kind, [&]<NormKind K>() {
      visit_bool(x.size(-1) >= kFar, [&]<bool far>() { f.template operator()<T, K, far>(); });
    });
  });
}

}  // namespace

template <Isa I> void norm_forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in) {
  visit(spec, in.x, [&]<class T, NormKind K, bool far>() {
    if (!in.branch.defined()) return forward<K, void, far, T>(spec, out, in);
    if constexpr (std::is_same_v<T, float>)
      if (out.sum.dtype() == DType::bf16) return forward<K, bf16, far, T>(spec, out, in);
    forward<K, T, far, T>(spec, out, in);
  });
}

template <Isa I> void norm_backward(const NormSpec& spec, const NormGradients& out, const NormSaved& in) {
  visit(spec, in.x, [&]<class T, NormKind K, bool far>() {
    visit_bool(in.gain.defined() || out.dgain.defined() || out.dbias.defined(),
               [&]<bool affine>() { backward<K, affine, far, T>(spec, out, in); });
  });
}

template void norm_forward<kTarget>(const NormSpec&, const NormOutputs&, const NormInputs&);
template void norm_backward<kTarget>(const NormSpec&, const NormGradients&, const NormSaved&);

}  // namespace isonorm::kernels::cpu
