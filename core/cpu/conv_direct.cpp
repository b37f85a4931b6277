// Convolution without a matrix of windows. Lines of images are copied with their padding to scratch memory that stays
// in cache, so that a window's part of a line is one run. Registers hold outputs of neighbouring windows (cf. Georganas
// et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures", SC 2018). Every sum has one
// order for any number of threads.
#include "core/kernels/images.h"

#include <atomic>

#include "core/cpu/conv_block.h"
#include "core/cpu/subnormals.h"
#include "core/cpu/target.h"
#include "core/cpu/window.h"
#include "core/cpu/workspace.h"
#include "core/system/parallel.h"

namespace isonorm::kernels::cpu {
namespace {

constexpr int64_t kLineBytes =
    256 << 10;  // padded lines that a block of outputs reads: a part of the second-level cache
constexpr int kOwnVectors = kTarget == Isa::avx512 ? 3 : 2;  // registers of adjacent entries in a line of dw
constexpr int kFewVectors = 2;                               // registers of outputs, if there are few such entries

// Padded lines of one group's channels, for blocks of lines of outputs.
template <class T> struct Lines {
  const WindowShape& s;
  int64_t own, line, outputs;  // channels of the group; elements of a line; lines of outputs in a block

  explicit Lines(const WindowShape& s) : s(s), own(s.channels / s.groups) {
    line = (s.width + 2 * s.pad_w) * own;
    const int64_t fit = kLineBytes / std::max<int64_t>(1, line * static_cast<int64_t>(sizeof(T)));
    outputs = std::clamp<int64_t>((fit - s.reach_h()) / s.stride_h + 1, 1, s.out_h);
    outputs = ceil_div(s.out_h, ceil_div(s.out_h, outputs));
  }
  int64_t blocks() const { return ceil_div(s.out_h, outputs); }
  int64_t size() const { return ((outputs - 1) * s.stride_h + s.reach_h()) * line + kLanes<T>; }  // and a register
  int64_t end(int64_t y) const { return std::min(y + outputs, s.out_h); }
  // Position in the scratch memory of the first place of the windows of line y, unless this is padding above the image.
  int64_t at(int64_t y, int64_t first) const { return (y - first) * s.stride_h * line; }
  Places places(int64_t y) const {
    return places_between(y * s.stride_h - s.pad_h, s.kernel_h, s.dilation_h, 0, s.height);
  }
  Places columns(int64_t x) const {
    return places_between(x * s.stride_w - s.pad_w, s.kernel_w, s.dilation_w, 0, s.width);
  }
  // Copies the part of an image's group that the windows of the lines [first, end(first)) see. Lines of padding above
  // and below the image are not written.
  void fill(T* to, const T* x, int64_t image, int64_t group, int64_t first) const {
    const int64_t top = first * s.stride_h - s.pad_h;
    const int64_t bottom = (end(first) - 1) * s.stride_h - s.pad_h + s.reach_h();
    for (int64_t y = std::max<int64_t>(0, top); y < std::min(s.height, bottom); ++y) {
      T* l = to + (y - top) * line;
      const T* from = x + (image * s.height + y) * s.width * s.channels + group * own;
      l = std::fill_n(l, s.pad_w * own, T(0));
      if (s.groups == 1)
        l = std::copy_n(from, s.width * own, l);
      else
        for (int64_t i = 0; i < s.width; ++i, from += s.channels) l = std::copy_n(from, own, l);
      std::fill_n(l, s.pad_w * own, T(0));
    }
  }
};

// True if the padding to the left and right of the image may be multiplied as zeros, which is faster: the zeros add
// nothing if all `factors` are finite. If false, that padding is left out. (Padding above and below is always left
// out.)
template <class T> bool multiplies_padding(const WindowShape& s, const Tensor& factors) {
  if (s.pad_w == 0) return true;
  const T* p = factors.data<T>();
  std::atomic<bool> finite = true;
  parallel_for(factors.numel(), 65536, [&](int64_t begin, int64_t end) {
    const auto [zeros] = sum_row<T, 1>(end - begin, [&](int64_t i, auto lanes, Vec<T>* sum) {
      sum[0] += lanes.keep(lanes.load(p + begin + i) * T(0));  // NaN if a factor is infinite or NaN
    });
    if (zeros != 0) finite = false;
  });
  return finite;
}

// Number of runs in a line of a window. Adjacent places, padding included, are one run.
int64_t runs_of_line(const WindowShape& s, bool with_padding) {
  return s.dilation_w == 1 && with_padding ? 1 : s.kernel_w;
}

// Packs the panel [places, in, w] of the columns [column, column + filled) of a group's filter [out, places, in].
template <class T>
void pack_filter(T* to, int64_t w, const T* weight, int64_t places, int64_t in, int64_t column, int64_t filled) {
  pack_transposed(Panels<T>{to, places * in, w}, weight + column * places * in, places * in, filled);
}
// The same for the transpose [in, places in reverse order, out], whose columns are `in`.
template <class T>
void pack_transpose(T* to, int64_t w, const T* weight, int64_t places, int64_t in, int64_t out, int64_t column,
                    int64_t filled) {
  for (int64_t p = places - 1; p >= 0; --p)
    for (int64_t o = 0; o < out; ++o, to += w) {
      std::copy_n(weight + (o * places + p) * in + column, filled, to);
      std::fill(to + filled, to + w, T(0));
    }
}

// Like run_rows() for a line of outputs, but each sums only over the places of its window that are inside the image. A
// run is one place.
template <class T>
void run_inside(const Lines<T>& lines, const RunProduct<T>& p, int64_t columns, T* c, int64_t c_step, From<T> from) {
  for (int64_t x = 0; x < lines.s.out_w; ++x, c += c_step) {
    const Places v = lines.columns(x);
    for (int64_t o = 0; o < columns; ++o) {
      T sum = 0;
      for (int64_t r = 0; r < p.count; ++r)
        if (const int64_t place = r % lines.s.kernel_w; v.begin <= place && place < v.end)
          for (int64_t i = 0; i < p.runs[r].depth; ++i)
            sum += p.a[x * p.a_row + p.runs[r].a + i] * p.b[(p.runs[r].b + i) * p.b_step + o];
      c[o] = from.p ? from.p[o] + sum : sum;
    }
  }
}

template <class T>
void run_convolve(const WindowShape& s, const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  bool transposed) {
  const int64_t channels = y.size(3), out = channels / s.groups, own = s.channels / s.groups, depth = s.depth();
  const bool with_padding = multiplies_padding<T>(s, weight);
  const int64_t width = whole_lanes<T>(out), panels = ceil_div(width, kPanel<T>),
                per_line = runs_of_line(s, with_padding);
  const T *in = x.data<T>(), *filter = weight.data<T>(), *base = bias.defined() ? bias.data<T>() : nullptr;
  T* to = y.mutable_data<T>();
  const Workspace<T> packed(s.groups * width * depth);
  T* const b = packed.data();
  const auto panel_width = [=](int64_t column) { return std::min(kPanel<T>, width - column); };
  parallel_for(s.groups * panels, rows_of_work(depth * kPanel<T>), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / panels, column = i % panels * kPanel<T>, w = panel_width(column);
      const T* f = filter + group * out * depth;
      T* panel = b + (group * width + column) * depth;
      transposed ? pack_transpose(panel, w, f, s.places(), out, own, column, std::min(w, out - column))
                 : pack_filter(panel, w, f, s.places(), own, column, std::min(w, out - column));
    }
  });
  const Lines<T> lines(s);
  const Workspace<Run> memory(s.kernel_h * per_line);
  Run* const runs = memory.data();
  for (int64_t i = 0; i < s.kernel_h; ++i)
    for (int64_t j = 0; j < per_line; ++j)
      runs[i * per_line + j] = {i * s.dilation_h * lines.line + j * s.dilation_w * own, (i * s.kernel_w + j) * own,
                                per_line == 1 ? s.kernel_w * own : own};
  const int64_t blocks = lines.blocks(), tasks = s.images * blocks;
  const Partition parts{tasks, s.rows() * channels * depth <= kWorthSharing ? 1 : tasks};
  parallel_for(parts, [=](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    const Workspace<T> scratch(lines.size());
    for (int64_t t = begin; t < end; ++t)
      for (int64_t group = 0; group < s.groups; ++group) {
        const int64_t image = t / blocks, first = t % blocks * lines.outputs;
        lines.fill(scratch.data(), in, image, group, first);
        for (int64_t column = 0; column < out; column += kPanel<T>)
          for (int64_t line = first; line < lines.end(first); ++line) {
            const Places h = lines.places(line);
            const int64_t w = panel_width(column), at = group * out + column;
            const RunProduct<T> p{runs + h.begin * per_line,
                                  (h.end - h.begin) * per_line,
                                  scratch.data() + lines.at(line, first),
                                  s.stride_w * own,
                                  1,
                                  b + (group * width + column) * depth,
                                  w,
                                  w};
            const int64_t columns = std::min(w, out - column);
            T* const c = to + (image * s.out_h + line) * s.out_w * channels + at;
            const From<T> from{base ? base + at : nullptr, 0};
            if (with_padding)
              run_rows<kPanelVectors>(p, s.out_w, columns, c, channels, from);
            else
              run_inside(lines, p, columns, c, channels, from);
          }
      }
  });
}

// Each thread computes blocks of outputs in some lines of the filter, for all images, so no two threads add to one sum.
// Registers hold adjacent entries in a line of the filter or, if these are few, outputs; dw is then summed as its
// transpose.
template <class T> void run_filter_gradient(const WindowShape& s, const Tensor& dw, const Tensor& dy, const Tensor& x) {
  const int64_t channels = dy.size(3), out = channels / s.groups, own = s.channels / s.groups, depth = s.depth();
  const bool with_padding = multiplies_padding<T>(s, dy);
  const int64_t per_line = runs_of_line(s, with_padding), length = per_line == 1 ? s.kernel_w * own : own;
  const bool few = out % kLanes<T> == 0 && length * (out / kLanes<T>) < ceil_div(length, kLanes<T>) * out;
  const int64_t rows = few ? kFewVectors * kLanes<T> : block_rows(kOwnVectors), outs = ceil_div(out, rows);
  const int64_t items = s.kernel_h * per_line * outs;
  const T *in = x.data<T>(), *d = dy.data<T>();
  T* const to = dw.mutable_data<T>();
  const Workspace<T> transpose(few ? dw.numel() : 0);  // [groups, depth, out]
  T* const sums = transpose.data();
  const auto for_transpose = [=](const auto& f) {
    for (int64_t o = 0; few && o < channels; ++o)
      for (int64_t k = 0; k < depth; ++k) f(to[o * depth + k], sums[(o / out * depth + k) * out + o % out]);
  };
  for_transpose([](T value, T& sum) { sum = value; });
  const Lines<T> lines(s);
  const Partition parts = s.rows() * channels * depth <= kWorthSharing
                              ? Partition{s.groups * items, 1}
                              : thread_blocks(s.groups * items, s.groups * items);
  parallel_for(parts, [=](int64_t begin, int64_t end) {
    const FlushSubnormals<T> flush;
    const Workspace<T> scratch(lines.size());
    const Workspace<Run> runs(lines.outputs);
    for (int64_t group = begin / items; group * items < end; ++group)
      for (int64_t image = 0; image < s.images; ++image)
        for (int64_t first = 0; first < s.out_h; first += lines.outputs) {
          lines.fill(scratch.data(), in, image, group, first);
          const int64_t from = std::max(begin - group * items, int64_t{0}),
                        until = std::min(end - group * items, items);
          for (int64_t item = from; item < until; ++item) {
            const int64_t i = item / outs / per_line, j = item / outs % per_line, o = item % outs * rows;
            const Places v = with_padding ? Places{0, s.out_w}  // windows of a line whose place j is in the image
                                          : places_between(j * s.dilation_w - s.pad_w, s.out_w, s.stride_w, 0, s.width);
            int64_t count = 0;
            for (int64_t y = first; y < lines.end(first); ++y)
              if (const Places h = lines.places(y); h.begin <= i && i < h.end) {
                const int64_t at_dy = ((y - first) * s.out_w + v.begin) * channels,
                              at_x = lines.at(y, first) + v.begin * s.stride_w * own, n = v.end - v.begin;
                runs.data()[count++] = few ? Run{at_x, at_dy, n} : Run{at_dy, at_x, n};
              }
            if (count == 0) continue;
            const T* line = scratch.data() + i * s.dilation_h * lines.line + j * s.dilation_w * own;
            const T* of_outs = d + (image * s.out_h + first) * s.out_w * channels + group * out + o;
            const int64_t place = (i * s.kernel_w + j) * own, some = std::min(rows, out - o);
            if (few) {
              T* c = sums + (group * depth + place) * out + o;
              const RunProduct<T> p{runs.data(), count, line, 1, s.stride_w * own, of_outs, 1, channels};
              run_rows<kFewVectors>(p, length, some, c, out, From<T>{c, out});
              continue;
            }
            T* c = to + (group * out + o) * depth + place;
            for (int64_t column = 0; column < length; column += kOwnVectors * kLanes<T>) {
              const RunProduct<T> p{runs.data(), count, of_outs, 1, channels, line + column, 1, s.stride_w * own};
              run_rows<kOwnVectors>(p, some, std::min<int64_t>(kOwnVectors * kLanes<T>, length - column), c + column,
                                    depth, From<T>{c + column, depth});
            }
          }
        }
  });
  for_transpose([](T& value, T sum) { value = sum; });
}

}  // namespace

template <Isa I>
void convolve(const WindowShape& s, const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
              bool transposed) {
  if (y.numel() == 0) return;
  y.dtype() == DType::f64 ? run_convolve<double>(s, y, x, weight, bias, transposed)
                          : run_convolve<float>(s, y, x, weight, bias, transposed);
}

template <Isa I> void filter_gradient(const WindowShape& s, const Tensor& dw, const Tensor& dy, const Tensor& x) {
  if (dw.numel() == 0 || dy.numel() == 0) return;
  dy.dtype() == DType::f64 ? run_filter_gradient<double>(s, dw, dy, x) : run_filter_gradient<float>(s, dw, dy, x);
}

template void convolve<kTarget>(const WindowShape&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool);
template void filter_gradient<kTarget>(const WindowShape&, const Tensor&, const Tensor&, const Tensor&);

}  // namespace isonorm::kernels::cpu
