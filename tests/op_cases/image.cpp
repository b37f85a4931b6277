// Rows of convolution and pooling.
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/ops/images.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Windows {
  Size2 window, stride = 1, padding = 0, dilation = 1;
  bool ceil = false;
};

// Number of windows, counted one by one. Each window ends inside the padded image. With ceil, a window is added if the
// one before it does not reach the end and if it begins before the padding after the image.
int64_t outputs(int64_t size, int64_t window, int64_t stride, int64_t padding, int64_t dilation, bool ceil) {
  const int64_t padded = size + 2 * padding, reach = (window - 1) * dilation + 1;
  int64_t n = 0;
  while (ceil ? (n - 1) * stride + reach < padded && n * stride < size + padding : n * stride + reach <= padded) ++n;
  return n;
}
Dims outputs(const Dims& x, const Windows& w, int64_t channels) {
  return {x[0], outputs(x[1], w.window.height, w.stride.height, w.padding.height, w.dilation.height, w.ceil),
          outputs(x[2], w.window.width, w.stride.width, w.padding.width, w.dilation.width, w.ceil), channels};
}

// Calls f(y, x, i, j) for the positions of window (oy, ox) that lie inside the image or within `more` pixels around it.
template <class F> void for_window(const Dims& x, const Windows& w, int64_t oy, int64_t ox, Size2 more, F f) {
  for (int64_t i = 0; i < w.window.height; ++i)
    for (int64_t j = 0; j < w.window.width; ++j) {
      const int64_t y = oy * w.stride.height + i * w.dilation.height - w.padding.height,
                    z = ox * w.stride.width + j * w.dilation.width - w.padding.width;
      if (y >= -more.height && y < x[1] + more.height && z >= -more.width && z < x[2] + more.width) f(y, z, i, j);
    }
}

Array convolved(const Arrays& a, const Conv2dOptions& o) {
  const Array &x = a[0], &w = a[1];
  const int64_t out = w.shape[0], own = w.shape[3];
  const Windows windows{{w.shape[1], w.shape[2]}, o.stride, o.padding, o.dilation};
  return tabulate(outputs(x.shape, windows, out), [&](const Dims& at) {
    const int64_t group = at[3] / (out / o.groups);
    long double sum = a.size() > 2 ? a[2].v[at[3]] : 0;
    for_window(x.shape, windows, at[1], at[2], 0, [&](int64_t y, int64_t z, int64_t i, int64_t j) {
      for (int64_t c = 0; c < own; ++c)
        sum += static_cast<long double>(x.at({at[0], y, z, group * own + c})) * w.at({at[3], i, j, c});
    });
    return static_cast<double>(sum);
  });
}

template <class F> Array pooled(const Array& x, const Windows& w, F of_window) {
  return tabulate(outputs(x.shape, w, x.shape[3]), [&](const Dims& at) {
    std::vector<double> inside;
    for_window(x.shape, w, at[1], at[2], 0, [&](int64_t y, int64_t z, int64_t, int64_t) {
      inside.push_back(x.at({at[0], y, z, at[3]}));
    });
    int64_t places = 0;  // including positions in the padding
    for_window(x.shape, w, at[1], at[2], w.padding, [&](int64_t, int64_t, int64_t, int64_t) { ++places; });
    return of_window(inside, places);
  });
}

double largest_of(const std::vector<double>& v, int64_t) {
  double top = v.empty() ? -HUGE_VAL : v.front();
  for (const double x : v) top = std::isnan(top) || x <= top ? top : x;
  return top;
}

std::string label_of(const Windows& w) {
  return text("window ", w.window, " stride ", w.stride, " padding ", w.padding,
              w.dilation == Size2(1) ? "" : text(" dilation ", w.dilation), w.ceil ? " ceil" : "");
}

OpCase conv_case() {
  OpCase op = row_of(
      "Images", "conv2d", "(x, weight, bias = {}, Conv2dOptions options = {})",
      "y[n, h, w, o] = bias[o] + sum of x[n, h stride + i dilation - padding, w stride + j dilation - padding, c] "
      "weight[o, i, j, c]",
      tolerance::product);
  struct Case {
    Dims x;
    int64_t out;
    Size2 window;
    Conv2dOptions o = {};
  };
  const auto add = [&](const Case& c, bool bias) -> Sample& {
    const int64_t own = c.x[3] / c.o.groups;
    Arrays in{op.draw.normal(c.x), op.draw.normal({c.out, c.window.height, c.window.width, own})};
    if (bias) in.push_back(op.draw.normal({c.out}));
    Sample& s = op.add(
        label_of({c.window, c.o.stride, c.o.padding, c.o.dilation}) +
            (c.o.groups == 1 ? "" : text(" groups ", c.o.groups)),
        in, [o = c.o](const Tensors& t) { return conv2d(t[0], t[1], t.size() > 2 ? t[2] : Tensor(), o); },
        [o = c.o](const Arrays& a) { return convolved(a, o); });
    s.length = static_cast<double>(c.window.height * c.window.width * own);
    return s;
  };
  const std::vector<Case> cases = {
      {{1, 1, 1, 1}, 1, 1},
      {{2, 3, 4, 2}, 3, 1},
      {{1, 3, 3, 1}, 2, 3},
      {{2, 4, 5, 3}, 2, {2, 3}},
      {{1, 5, 4, 2}, 3, 3, {.padding = 1}},
      {{2, 5, 6, 2}, 1, 3, {.stride = 2, .padding = 1}},
      {{1, 6, 5, 1}, 2, {3, 2}, {.stride = {1, 3}, .padding = {2, 0}}},
      {{2, 3, 3, 4}, 2, 1, {.stride = 2}},
      {{1, 3, 2, 3}, 2, 1, {.padding = 1}},
      {{2, 4, 4, 4}, 6, 3, {.padding = 1, .groups = 2}},
      {{1, 4, 3, 3}, 3, 2, {.groups = 3}},
      {{1, 4, 4, 2}, 4, {2, 1}, {.groups = 2}},
      {{2, 3, 3, 4}, 4, 1, {.groups = 4}},
      {{1, 1, 1, 2}, 2, 3, {.padding = 3}},  // windows that see only padding
      {{1, 7, 7, 8}, 5, 5, {.stride = 3, .padding = 2}},
      {{1, 3, 4, 17}, 9, 3, {.padding = 1}},
      {{1, 9, 2, 1}, 3, {7, 2}, {.stride = 4, .padding = {1, 0}}},
      {{1, 7, 6, 2}, 3, 3, {.dilation = 2}},
      {{2, 6, 8, 3}, 2, {3, 2}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}}},
      {{1, 8, 8, 4}, 4, 2, {.stride = 3, .padding = 2, .dilation = 4, .groups = 2}},
      {{2, 9, 7, 5}, 37, {3, 2}, {.padding = {1, 2}}},  // more padding than the windows need
      {{0, 3, 3, 2}, 2, 3},
      {{2, 3, 3, 0}, 2, 2},
      {{2, 3, 3, 2}, 0, 2},
  };
  for (const Case& c : cases)
    for (const bool bias : {true, false}) add(c, bias);
  add({{2, 13, 15, 35}, 67, 3, {.padding = 1}}, true).large = true;  // not a multiple of a block of registers
  add({{3, 17, 19, 16}, 24, 3, {.padding = 1}}, true).large = true;
  add({{2, 30, 31, 64}, 8, 3, {.stride = 2, .padding = 1}}, true).large = true;  // several blocks of windows
  add({{2, 21, 20, 32}, 16, 3, {.stride = 2, .padding = 3, .dilation = 3}}, true).large = true;
  add({{3, 20, 20, 32}, 32, 5, {.padding = 2, .groups = 4}}, true).large = true;
  const auto refuse = [&](std::vector<std::string> words, const Dims& x, const Dims& w, Conv2dOptions o = {},
                          const Dims& b = {}) {
    op.refuse(std::move(words), [=] { conv2d(reals(x), reals(w), b.rank ? reals(b) : Tensor(), o); });
  };
  refuse({"[2, 3, 4]", "[images, height, width, channels]"}, {2, 3, 4}, {1, 1, 1, 4});
  refuse({"weight", "[2, 3]"}, {1, 3, 3, 2}, {2, 3});
  refuse({"window of 4 x 2", "images of 3 x 3", "padding of 0 x 0"}, {1, 3, 3, 2}, {1, 4, 2, 2});
  refuse({"window of 3 x 2", "dilation of 2 x 2", "images of 4 x 3"}, {1, 4, 3, 2}, {1, 3, 2, 2}, {.dilation = 2});
  refuse({"dilation of 1 x 0"}, {1, 3, 3, 2}, {1, 2, 2, 2}, {.dilation = {1, 0}});
  refuse({"stride of 0 x 1"}, {1, 3, 3, 2}, {1, 2, 2, 2}, {.stride = {0, 1}});
  refuse({"padding of -1 x -1"}, {1, 3, 3, 2}, {1, 2, 2, 2}, {.padding = -1});
  refuse({"window of 0 x 2"}, {1, 3, 3, 2}, {1, 0, 2, 2});
  refuse({"images of 0 x 3"}, {1, 0, 3, 2}, {1, 1, 1, 2}, {.padding = 1});
  refuse({"[1, 3, 3, 3]", "3 channels", "reads 2"}, {1, 3, 3, 3}, {2, 2, 2, 1}, {.groups = 2});
  refuse({"2 groups", "3 channels of the output"}, {1, 3, 3, 4}, {3, 2, 2, 2}, {.groups = 2});
  refuse({"0 groups"}, {1, 3, 3, 4}, {3, 2, 2, 2}, {.groups = 0});
  refuse({"[1, 3, 3, 4]", "[2, 2, 2, 3]", "4 channels", "reads 3"}, {1, 3, 3, 4}, {2, 2, 2, 3});
  refuse({"bias [3]", "[2, 2, 2, 4]"}, {1, 3, 3, 4}, {2, 2, 2, 4}, {}, {3});
  refuse({"2 x 4611686018427387904", "largest size"}, {1, 3, 3, 1}, {1, 1, 1, 1}, {.padding = int64_t{1} << 62});
  op.refuse({"i64"}, [] { conv2d(integers({1, 3, 3, 2}), integers({1, 2, 2, 2})); });
  op.refuse({"dtypes differ", "f32", "f64"}, [] { conv2d(reals({1, 3, 3, 2}), reals({1, 2, 2, 2}, DType::f64)); });
  return op;
}

// Calls add(shape, windows, large) for shapes that the windows fit. Windows may overlap, leave gaps and reach into the
// padding.
template <class F> void for_poolings(F add) {
  const std::vector<std::pair<Dims, Windows>> cases = {
      {{1, 1, 1, 1}, {1, 1, 0}},           {{2, 4, 6, 3}, {2, 2, 0}},
      {{1, 5, 5, 2}, {2, 2, 0}},           {{2, 5, 4, 1}, {3, 2, 1}},
      {{1, 4, 4, 5}, {3, 1, 1}},           {{1, 7, 3, 2}, {{3, 1}, {2, 1}, {1, 0}}},
      {{2, 3, 5, 4}, {{2, 3}, 1, 0}},      {{1, 6, 6, 2}, {2, 3, 0}},
      {{1, 3, 4, 9}, {{3, 4}, 1, 0}},      {{1, 2, 2, 17}, {2, 1, 1}},
      {{1, 8, 5, 1}, {4, {4, 1}, {2, 1}}}, {{0, 4, 4, 2}, {2, 2, 0}},
      {{2, 4, 4, 0}, {2, 2, 0}},           {{1, 5, 6, 3}, {{1, 2}, 2, {0, 1}}},
      {{3, 2, 2, 2}, {2, 2, 0}},           {{1, 9, 1, 3}, {{5, 1}, {3, 1}, {2, 0}}},
      {{2, 5, 7, 2}, {2, 2, 0, 1, true}},  {{1, 6, 5, 3}, {3, 2, 1, 1, true}},
      {{1, 7, 8, 2}, {3, 3, 1, 2}},        {{2, 7, 6, 2}, {{2, 3}, {3, 2}, 1, {3, 2}, true}},
      {{1, 4, 4, 2}, {2, 3, 1, 1, true}},  {{1, 2, 3, 2}, {3, 2, 0, 1, true}},
      {{1, 1, 3, 2}, {2, 1, 1, 2}}};  // windows whose positions all lie outside the image
  for (const auto& [shape, pooling] : cases)
    for (const int64_t more : {0, 3}) {
      Dims x = shape;
      if (x[3] > 0) x[3] += more;
      add(x, pooling, false);
    }
  add({5, 23, 24, 33}, {3, 2, 1}, true);
  add({1, 4, 5, 300}, {2, 2, 0}, true);
}

template <class F> void add_refusals(OpCase& op, F pool) {
  op.refuse({"[3, 4, 2]", "[images, height, width, channels]"}, [=] { pool(reals({3, 4, 2}), 2, {}); });
  op.refuse({"window of 3 x 5", "images of 4 x 4"}, [=] { pool(reals({1, 4, 4, 1}), {3, 5}, {}); });
  op.refuse({"window of 0 x 0"}, [=] { pool(reals({1, 4, 4, 1}), 0, {}); });
  op.refuse({"stride of 2 x 0"}, [=] { pool(reals({1, 4, 4, 1}), 2, {.stride = Size2{2, 0}}); });
  op.refuse({"padding of 2 x 0", "half a window of 3 x 3"}, [=] { pool(reals({1, 4, 4, 1}), 3, {.padding = {2, 0}}); });
  op.refuse({"padding of -1 x 0"}, [=] { pool(reals({1, 4, 4, 1}), 3, {.padding = {-1, 0}}); });
  op.refuse({"dilation of 0 x 1"}, [=] { pool(reals({1, 4, 4, 1}), 2, {.dilation = {0, 1}}); });
  op.refuse({"window of 3 x 3", "dilation of 2 x 2"}, [=] { pool(reals({1, 4, 6, 1}), 3, {.dilation = 2}); });
  op.refuse({"images of 4 x 0"}, [=] { pool(reals({1, 4, 0, 1}), 1, {}); });
  op.refuse({"i64"}, [=] { pool(integers({1, 4, 4, 1}), 2, {}); });
}

}  // namespace

std::vector<OpCase> image_cases() {
  OpCase largest = row_of("Images", "max_pool2d", "(x, Size2 window, Pool2dOptions options = {})",
                          "the largest element of each window, by channel");
  OpCase mean = row_of("Images", "avg_pool2d", "(x, Size2 window, Pool2dOptions options = {})",
                       "the mean of each window, by channel; padding counts as zeros, or not", tolerance::reduction);
  Draw draw("pooling");
  for_poolings([&](const Dims& shape, const Windows& w, bool large) {
    const Pool2dOptions o{.stride = w.stride, .padding = w.padding, .dilation = w.dilation, .ceil = w.ceil};
    Sample& top = largest.add(
        label_of(w), {draw.distinct(shape)}, [=](const Tensor& x) { return max_pool2d(x, w.window, o); },
        [=](const Array& a) { return pooled(a, w, largest_of); });
    const bool blind = shape[1] == 1 && w.dilation == Size2(2);  // no window contains a pixel
    top.large = large, top.gradient = !blind;
    for (const bool count : {true, false}) {
      Pool2dOptions counted = o;
      counted.count_padding = count;
      Sample& s = mean.add(
          label_of(w) + (count ? "" : " without padding"), {draw.normal(shape)},
          [=](const Tensor& x) { return avg_pool2d(x, w.window, counted); },
          [=](const Array& a) {
            const auto mean_of = [&](const std::vector<double>& v, int64_t places) {
              const long double sum = std::accumulate(v.begin(), v.end(), 0.0L);
              return static_cast<double>(sum / (count ? places : static_cast<int64_t>(v.size())));
            };
            return pooled(a, w, mean_of);
          });
      s.length = static_cast<double>(w.window.height * w.window.width);
      s.large = large, s.gradient = count || !blind;
    }
  });
  // The stride defaults to the window. NaN counts as the largest value; infinities are ordinary values.
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Array special({1, 2, 4, 2});
  special.v = {1, -inf, nan, -inf, 2, inf, 3, nan, nan, -inf, 5, -inf, inf, 7, 1, 0};
  const Windows side_by_side{2, 2};
  largest
      .add(
          "special values", {special}, [](const Tensor& x) { return max_pool2d(x, 2); },
          [=](const Array& a) { return pooled(a, side_by_side, largest_of); })
      .gradient = false;
  add_refusals(largest, [](const Tensor& x, Size2 window, Pool2dOptions o) { max_pool2d(x, window, o); });
  add_refusals(mean, [](const Tensor& x, Size2 window, Pool2dOptions o) { avg_pool2d(x, window, o); });
  largest.refuse({"window of 17 x 16", "256"}, [] { max_pool2d(reals({1, 17, 17, 1}), {17, 16}); });
  return {conv_case(), largest, mean};
}

}  // namespace isonorm::test
