// Norms over places. Sums by channel over blocks of rows that stay in cache are combined in order. Forward reads x
// twice from memory, and backward reads x and dy twice; further passes over a block find it in cache.
#include "core/kernels/norm.h"

#include "core/cpu/target.h"
#include "core/cpu/workspace.h"
#include "core/formulas/round_up.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

// The rows of an outer index, in blocks that depend only on the shape.
struct Blocks {
  int64_t rows, count;  // rows of a block; blocks of each outer index

  explicit Blocks(const GroupNormShape& s)
      : rows(std::max<int64_t>(16, 8192 / std::max<int64_t>(1, s.channels()))),
        count(std::max<int64_t>(1, ceil_div(s.length, rows))) {}
};

// f(outer, block, first row, number of rows) for all blocks.
template <class F> void for_blocks(const GroupNormShape& s, const Blocks& b, const F& f) {
  const int64_t work = std::min(b.rows, s.length) * s.channels();
  parallel_for(s.outer * b.count, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i % b.count * b.rows;
                   f(i / b.count, i % b.count, first, std::min(b.rows, s.length - first));
                 }
               });
}

template <class T> const T* data_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }
template <class T> T* mutable_or_null(const Tensor& t) { return t.defined() ? t.mutable_data<T>() : nullptr; }

// Moments of a channel in a block of rows, by the corrected two-pass algorithm (Chan, Golub & LeVeque, "Algorithms for
// computing the sample variance", 1983). The first sum rounds: far from zero its error can be larger than the
// deviations. kRest is the mean of the deviations from this rounded mean, so kMean + kRest is the mean (0 unless
// centred).
enum Moment { kMean, kRest, kSquare, kMoments };  // kSquare: the sum of squares around the mean

// Computes moments [kMoments, channels] of `rows` rows.
template <class A, class T> void block_moments(const T* x, int64_t rows, int64_t channels, bool centred, A* moments) {
  A *mean = moments + kMean * channels, *rest = moments + kRest * channels, *square = moments + kSquare * channels;
  std::fill_n(moments, kMoments * channels, A(0));
  if (centred && rows > 0) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* p = x + r * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) mean[c] += A(p[c]);
    }
    for (int64_t c = 0; c < channels; ++c) mean[c] /= static_cast<A>(rows);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* p = x + r * channels;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      const A apart = A(p[c]) - mean[c];
      square[c] += apart * apart;
      rest[c] += apart;
    }
  }
  for (int64_t c = 0; c < channels && rows > 0; ++c) {
    if (!centred) rest[c] = 0;
    square[c] -= rest[c] * (rest[c] / static_cast<A>(rows));
    rest[c] /= static_cast<A>(rows);
  }
}

// Computes the stats of a group from the moments [count, kMoments, channels] of its blocks (Chan, Golub & LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979). Means are added as distances from
// the first mean.
template <class A>
void group_stats(const GroupNormShape& s, const Blocks& b, const A* moments, int64_t group, A* stats) {
  const auto rows = [&](int64_t block) {
    return static_cast<A>(std::clamp<int64_t>(s.leading - block * b.rows, 0, b.rows));
  };
  const A* first = moments + group * s.width;
  const auto moment = [&](Moment m, int64_t block, int64_t c) {
    return first[(block * kMoments + m) * s.channels() + c];
  };
  const auto distance = [&](int64_t block, int64_t c) {
    return moment(kMean, block, c) - first[0] + moment(kRest, block, c);
  };
  const A n = static_cast<A>(s.entries());
  A mean = 0, square = 0;
  for (int64_t k = 0; k < b.count; ++k)
    for (int64_t c = 0; c < s.width; ++c) mean += rows(k) * distance(k, c);
  mean /= n;
  for (int64_t k = 0; k < b.count; ++k)
    for (int64_t c = 0; c < s.width; ++c) {
      const A apart = distance(k, c) - mean;
      square += moment(kSquare, k, c) + rows(k) * apart * apart;
    }
  square /= n;
  stats[0] = first[0] + mean;
  stats[1] = square;
  stats[2] = s.inverse_root(square);
  stats[3] = mean - (stats[0] - first[0]);
}

template <class T> void forward(const GroupNormShape& s, const GroupNormOutputs& out, const GroupNormInputs& in) {
  using A = acc_t<T>;
  const int64_t channels = s.channels();
  const Blocks b(s);
  const T* x = in.x.data<T>();
  T* y = out.y.mutable_data<T>();
  A* stats = out.stats.mutable_data<A>();
  const A *gain = data_or_null<A>(in.gain), *bias = data_or_null<A>(in.bias);
  const Workspace<A> moments(s.outer * b.count * kMoments * channels), map(s.outer * 3 * channels);
  for_blocks(s, b, [&](int64_t o, int64_t block, int64_t first, int64_t rows) {
    block_moments(x + (o * s.length + first) * channels, std::clamp<int64_t>(s.leading - first, 0, rows), channels,
                  s.centred, moments.data() + (o * b.count + block) * kMoments * channels);
  });
  parallel_for(s.outer, std::max<int64_t>(1, 2048 / (b.count * channels)), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      A* shift = map.data() + o * 3 * channels;  // y = (x - shift) scale + offset
      for (int64_t g = 0; g < s.groups; ++g) {
        A* to = stats + (o * s.groups + g) * s.kStats;
        group_stats(s, b, moments.data() + o * b.count * kMoments * channels, g, to);
        for (int64_t c = g * s.width; c < (g + 1) * s.width; ++c) {
          shift[c] = to[0];
          shift[channels + c] = to[2] * (gain ? gain[c] : A(1));
          shift[2 * channels + c] = (bias ? bias[c] : A(0)) - (to[3] == 0 ? A(0) : to[3] * shift[channels + c]);
        }
      }
    }
  });
  for_blocks(s, b, [&](int64_t o, int64_t, int64_t first, int64_t rows) {
    const A *shift = map.data() + o * 3 * channels, *scale = shift + channels, *offset = scale + channels;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (o * s.length + first + r) * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) y[at + c] = T((A(x[at + c]) - shift[c]) * scale[c] + offset[c]);
    }
  });
}

template <class T> void backward(const GroupNormShape& s, const GroupNormGradients& out, const GroupNormSaved& in) {
  using A = acc_t<T>;
  const int64_t channels = s.channels();
  const Blocks b(s);
  const T *x = in.x.data<T>(), *dy = in.dy.data<T>();
  T* dx = out.dx.mutable_data<T>();
  const A *stats = in.stats.data<A>(), *gain = data_or_null<A>(in.gain);
  const Workspace<A> partial(s.outer * b.count * 3 * channels), map(s.outer * 4 * channels);
  for_blocks(s, b, [&](int64_t o, int64_t block, int64_t first, int64_t rows) {
    A* mean = partial.data() + (o * b.count + block) * 3 * channels;
    A *plain = mean + channels, *product = plain + channels;  // sums of dy and of dy (x - mean)
    for (int64_t c = 0; c < channels; ++c) mean[c] = stats[(o * s.groups + c / s.width) * s.kStats];
    std::fill_n(plain, 2 * channels, A(0));
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (o * s.length + first + r) * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        plain[c] += A(dy[at + c]);
        product[c] += A(dy[at + c]) * (A(x[at + c]) - mean[c]);
      }
    }
  });
  // Adds the blocks of each outer index to its first block. dx = dy scale - (x - mean) turn - back.
  parallel_for(s.outer, std::max<int64_t>(1, 2048 / (b.count * channels)), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      A *plain = partial.data() + o * b.count * 3 * channels + channels, *product = plain + channels;
      for (int64_t k = 1; k < b.count; ++k)
        for (int64_t c = 0; c < 2 * channels; ++c) plain[c] += plain[k * 3 * channels + c];
      A* mean = map.data() + o * 4 * channels;
      for (int64_t g = 0; g < s.groups; ++g) {
        const A* stat = stats + (o * s.groups + g) * s.kStats;
        A sum = 0, turned = 0;
        for (int64_t c = g * s.width; c < (g + 1) * s.width; ++c) {
          const A scale = gain ? gain[c] : A(1);
          product[c] -= stat[3] * plain[c];
          sum += scale * plain[c];
          turned += scale * product[c];
        }
        for (int64_t c = g * s.width; c < (g + 1) * s.width; ++c) {
          mean[c] = stat[0];
          mean[channels + c] = stat[2] * (gain ? gain[c] : A(1));
          mean[2 * channels + c] = turned * s.slope(stat[1], stat[2]);
          mean[3 * channels + c] =
              s.centred ? sum * stat[2] / static_cast<A>(s.entries()) - stat[3] * mean[2 * channels + c] : A(0);
          product[c] *= stat[2];  // now the gain's gradient
        }
      }
    }
  });
  for_blocks(s, b, [&](int64_t o, int64_t, int64_t first, int64_t rows) {
    const A *mean = map.data() + o * 4 * channels, *scale = mean + channels, *turn = scale + channels;
    const A* back = turn + channels;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (o * s.length + first + r) * channels;
      const A counts = first + r < s.leading ? A(1) : A(0);
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c)
        dx[at + c] = T(A(dy[at + c]) * scale[c] - counts * (A(x[at + c]) - mean[c]) * turn[c] - back[c]);
    }
  });
  const auto sum_outer = [&](A* to, int64_t part) {
    if (!to) return;
    std::fill_n(to, channels, A(0));
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t c = 0; c < channels; ++c) to[c] += partial.data()[(o * b.count * 3 + part) * channels + c];
  };
  sum_outer(mutable_or_null<A>(out.dbias), 1);
  sum_outer(mutable_or_null<A>(out.dgain), 2);
}

}  // namespace

template <Isa I>
void group_norm_forward(const GroupNormShape& s, const GroupNormOutputs& out, const GroupNormInputs& in) {
  visit_floating(in.x.dtype(), "group_norm", [&]<class T>() { forward<T>(s, out, in); });
}
template <Isa I>
void group_norm_backward(const GroupNormShape& s, const GroupNormGradients& out, const GroupNormSaved& in) {
  visit_floating(in.x.dtype(), "group_norm", [&]<class T>() { backward<T>(s, out, in); });
}

template void group_norm_forward<kTarget>(const GroupNormShape&, const GroupNormOutputs&, const GroupNormInputs&);
template void group_norm_backward<kTarget>(const GroupNormShape&, const GroupNormGradients&, const GroupNormSaved&);

}  // namespace isonorm::kernels::cpu
