// Rows of convolution and pooling.
#include <cmath>
#include <limits>

#include "autograd/ops/conv.h"
#include "autograd/ops/pool.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

int64_t outputs(int64_t size, int64_t window, int64_t stride, int64_t padding) {
  return (size + 2 * padding - window) / stride + 1;
}

// f(y, x, i, j) for the places of window (oy, ox) that lie inside the image.
template <class F>
void for_window(const Dims& x, Size2 window, Size2 stride, Size2 padding, int64_t oy, int64_t ox, F f) {
  for (int64_t i = 0; i < window.height; ++i)
    for (int64_t j = 0; j < window.width; ++j) {
      const int64_t y = oy * stride.height + i - padding.height, z = ox * stride.width + j - padding.width;
      if (y >= 0 && y < x[1] && z >= 0 && z < x[2]) f(y, z, i, j);
    }
}

Array convolved(const Arrays& a, const Conv2dOptions& o) {
  const Array &x = a[0], &w = a[1];
  const int64_t out = w.shape[0], own = w.shape[3];
  const Size2 window{w.shape[1], w.shape[2]};
  return tabulate(
      {x.shape[0], outputs(x.shape[1], window.height, o.stride.height, o.padding.height),
       outputs(x.shape[2], window.width, o.stride.width, o.padding.width), out},
      [&](const Dims& at) {
        const int64_t group = at[3] / (out / o.groups);
        long double sum = a.size() > 2 ? a[2].v[at[3]] : 0;
        for_window(x.shape, window, o.stride, o.padding, at[1], at[2], [&](int64_t y, int64_t z, int64_t i, int64_t j) {
          for (int64_t c = 0; c < own; ++c)
            sum += static_cast<long double>(x.at({at[0], y, z, group * own + c})) * w.at({at[3], i, j, c});
        });
        return static_cast<double>(sum);
      });
}

struct Pooling {
  Size2 window, stride, padding;
};

template <class F> Array pooled(const Array& x, const Pooling& p, F of_window) {
  return tabulate({x.shape[0], outputs(x.shape[1], p.window.height, p.stride.height, p.padding.height),
                   outputs(x.shape[2], p.window.width, p.stride.width, p.padding.width), x.shape[3]},
                  [&](const Dims& at) {
                    std::vector<double> inside;
                    for_window(x.shape, p.window, p.stride, p.padding, at[1], at[2],
                               [&](int64_t y, int64_t z, int64_t, int64_t) {
                                 inside.push_back(x.at({at[0], y, z, at[3]}));
                               });
                    return of_window(inside);
                  });
}

double largest_of(const std::vector<double>& v) {
  double top = v.front();
  for (const double x : v) top = std::isnan(top) || x <= top ? top : x;
  return top;
}

std::string label_of(Size2 window, Size2 stride, Size2 padding, int64_t groups = 1) {
  return text("window ", window, " stride ", stride, " padding ", padding, groups == 1 ? "" : text(" groups ", groups));
}

OpCase conv_case() {
  OpCase op{.name = "conv2d",
            .group = "Images",
            .signature = "conv2d(x, weight, bias = {}, Conv2dOptions options = {})",
            .formula =
                "y[n, h, w, o] = bias[o] + sum of x[n, h stride + i - padding, w stride + j - padding, c] "
                "weight[o, i, j, c]",
            .tolerance = tolerance::product};
  Draw draw(op.name);
  struct Case {
    Dims x;
    int64_t out;
    Size2 window;
    Conv2dOptions o = {};
  };
  const auto add = [&](const Case& c, bool bias) -> Sample& {
    const int64_t own = c.x[3] / c.o.groups;
    Arrays in{draw.normal(c.x), draw.normal({c.out, c.window.height, c.window.width, own})};
    if (bias) in.push_back(draw.normal({c.out}));
    Sample& s = op.add(
        label_of(c.window, c.o.stride, c.o.padding, c.o.groups), in,
        [o = c.o](const Tensors& t) { return conv2d(t[0], t[1], t.size() > 2 ? t[2] : Tensor(), o); },
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
      {{1, 1, 1, 2}, 2, 3, {.padding = 3}},  // windows that see padding alone
      {{1, 7, 7, 8}, 5, 5, {.stride = 3, .padding = 2}},
      {{1, 3, 4, 17}, 9, 3, {.padding = 1}},
      {{1, 9, 2, 1}, 3, {7, 2}, {.stride = 4, .padding = {1, 0}}},
      {{0, 3, 3, 2}, 2, 3},
      {{2, 3, 3, 0}, 2, 2},
      {{2, 3, 3, 2}, 0, 2},
  };
  for (const Case& c : cases)
    for (const bool bias : {true, false}) add(c, bias);
  add({{3, 17, 19, 16}, 24, 3, {.padding = 1}}, true).large = true;
  add({{2, 30, 31, 64}, 8, 3, {.stride = 2, .padding = 1}}, true).large = true;  // several blocks of windows
  add({{3, 20, 20, 32}, 32, 5, {.padding = 2, .groups = 4}}, true).large = true;
  const auto refuse = [&](std::vector<std::string> words, const Dims& x, const Dims& w, Conv2dOptions o = {},
                          const Dims& b = {}) {
    op.refuse(std::move(words), [=] { conv2d(reals(x), reals(w), b.rank ? reals(b) : Tensor(), o); });
  };
  refuse({"[2, 3, 4]", "[images, height, width, channels]"}, {2, 3, 4}, {1, 1, 1, 4});
  refuse({"weight", "[2, 3]"}, {1, 3, 3, 2}, {2, 3});
  refuse({"window of 4 x 2", "images of 3 x 3", "padding of 0 x 0"}, {1, 3, 3, 2}, {1, 4, 2, 2});
  refuse({"stride of 0 x 1"}, {1, 3, 3, 2}, {1, 2, 2, 2}, {.stride = {0, 1}});
  refuse({"padding of -1 x -1"}, {1, 3, 3, 2}, {1, 2, 2, 2}, {.padding = -1});
  refuse({"window of 0 x 2"}, {1, 3, 3, 2}, {1, 0, 2, 2});
  refuse({"images of 0 x 3"}, {1, 0, 3, 2}, {1, 1, 1, 2}, {.padding = 1});
  refuse({"2 groups", "3 channels"}, {1, 3, 3, 3}, {2, 2, 2, 1}, {.groups = 2});
  refuse({"2 groups", "3 of the output"}, {1, 3, 3, 4}, {3, 2, 2, 2}, {.groups = 2});
  refuse({"0 groups"}, {1, 3, 3, 4}, {3, 2, 2, 2}, {.groups = 0});
  refuse({"[1, 3, 3, 4]", "[2, 2, 2, 3]", "must be 4"}, {1, 3, 3, 4}, {2, 2, 2, 3});
  refuse({"bias [3]", "[2, 2, 2, 4]"}, {1, 3, 3, 4}, {2, 2, 2, 4}, {}, {3});
  refuse({"2 x 4611686018427387904", "largest size"}, {1, 3, 3, 1}, {1, 1, 1, 1}, {.padding = int64_t{1} << 62});
  op.refuse({"i64"}, [] { conv2d(integers({1, 3, 3, 2}), integers({1, 2, 2, 2})); });
  op.refuse({"dtypes differ", "f32", "f64"}, [] { conv2d(reals({1, 3, 3, 2}), reals({1, 2, 2, 2}, DType::f64)); });
  return op;
}

// add(shape, pooling) for shapes that windows fit; the windows may overlap, leave gaps and reach into the padding.
template <class F> void for_poolings(F add) {
  const std::vector<std::pair<Dims, Pooling>> cases = {
      {{1, 1, 1, 1}, {1, 1, 0}},           {{2, 4, 6, 3}, {2, 2, 0}},
      {{1, 5, 5, 2}, {2, 2, 0}},           {{2, 5, 4, 1}, {3, 2, 1}},
      {{1, 4, 4, 5}, {3, 1, 1}},           {{1, 7, 3, 2}, {{3, 1}, {2, 1}, {1, 0}}},
      {{2, 3, 5, 4}, {{2, 3}, 1, 0}},      {{1, 6, 6, 2}, {2, 3, 0}},
      {{1, 3, 4, 9}, {{3, 4}, 1, 0}},      {{1, 2, 2, 17}, {2, 1, 1}},
      {{1, 8, 5, 1}, {4, {4, 1}, {2, 1}}}, {{0, 4, 4, 2}, {2, 2, 0}},
      {{2, 4, 4, 0}, {2, 2, 0}},           {{1, 5, 6, 3}, {{1, 2}, 2, {0, 1}}},
      {{3, 2, 2, 2}, {2, 2, 0}},           {{1, 9, 1, 3}, {{5, 1}, {3, 1}, {2, 0}}}};
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
  op.refuse({"images of 4 x 0"}, [=] { pool(reals({1, 4, 0, 1}), 1, {}); });
  op.refuse({"i64"}, [=] { pool(integers({1, 4, 4, 1}), 2, {}); });
}

}  // namespace

std::vector<OpCase> image_cases() {
  OpCase largest{.name = "max_pool2d",
                 .group = "Images",
                 .signature = "max_pool2d(x, Size2 window, Pool2dOptions options = {})",
                 .formula = "the largest element of each window, by channel",
                 .tolerance = tolerance::exact};
  OpCase mean{.name = "avg_pool2d",
              .group = "Images",
              .signature = "avg_pool2d(x, Size2 window, Pool2dOptions options = {})",
              .formula = "the mean of each window, by channel; padding counts as zeros",
              .tolerance = tolerance::reduction};
  Draw draw("pooling");
  for_poolings([&](const Dims& shape, const Pooling& p, bool large) {
    const Pool2dOptions o{.stride = p.stride, .padding = p.padding};
    const std::string label = label_of(p.window, p.stride, p.padding);
    largest
        .add(
            label, {draw.distinct(shape)}, [=](const Tensors& t) { return max_pool2d(t[0], p.window, o); },
            [=](const Arrays& a) { return pooled(a[0], p, largest_of); })
        .large = large;
    Sample& s = mean.add(
        label, {draw.normal(shape)}, [=](const Tensors& t) { return avg_pool2d(t[0], p.window, o); },
        [=](const Arrays& a) {
          return pooled(a[0], p, [&](const std::vector<double>& v) {
            long double sum = 0;
            for (const double x : v) sum += x;
            return static_cast<double>(sum / (p.window.height * p.window.width));
          });
        });
    s.length = static_cast<double>(p.window.height * p.window.width);
    s.large = large;
  });
  // Side by side unless a stride is said; NaN is the largest, infinities are numbers.
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Array special({1, 2, 4, 2});
  special.v = {1, -inf, nan, -inf, 2, inf, 3, nan, nan, -inf, 5, -inf, inf, 7, 1, 0};
  largest
      .add(
          "special values", {special}, [](const Tensors& t) { return max_pool2d(t[0], 2); },
          [](const Arrays& a) {
            return pooled(a[0], {2, 2, 0}, largest_of);
          })
      .gradient = false;
  add_refusals(largest, [](const Tensor& x, Size2 window, Pool2dOptions o) { max_pool2d(x, window, o); });
  add_refusals(mean, [](const Tensor& x, Size2 window, Pool2dOptions o) { avg_pool2d(x, window, o); });
  largest.refuse({"window of 17 x 16", "256"}, [] { max_pool2d(reals({1, 17, 17, 1}), {17, 16}); });
  return {conv_case(), largest, mean};
}

}  // namespace isonorm::test
