// Rows of 1-d convolution and of transposed convolution; conv2d is in tests/op_cases/image.cpp.
#include <cmath>

#include "autograd/ops/images.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

Array convolved_sequences(const Arrays& a, const Conv1dOptions& o) {
  const Array &x = a[0], &w = a[1];
  const int64_t length = x.shape[1], out = w.shape[0], window = w.shape[1], own = w.shape[2];
  int64_t outputs = 0;
  while (outputs * o.stride + (window - 1) * o.dilation < length + 2 * o.padding) ++outputs;
  return tabulate({x.shape[0], outputs, out}, [&](const Dims& at) {
    long double sum = a.size() > 2 ? a[2].v[at[2]] : 0;
    for (int64_t i = 0; i < window; ++i) {
      const int64_t t = at[1] * o.stride + i * o.dilation - o.padding;
      for (int64_t c = 0; t >= 0 && t < length && c < own; ++c)
        sum += static_cast<long double>(x.at({at[0], t, at[2] / (out / o.groups) * own + c})) * w.at({at[2], i, c});
    }
    return static_cast<double>(sum);
  });
}

OpCase conv1d_case() {
  OpCase op = row_of("Images", "conv1d", "(x, weight, bias = {}, Conv1dOptions options = {})",
                     "y[n, t, o] = bias[o] + sum of x[n, t stride + i dilation - padding, c] weight[o, i, c]",
                     tolerance::product);
  struct Case {
    Dims x;
    int64_t out, window;
    Conv1dOptions o = {};
    bool large = false;
  };
  const std::vector<Case> cases = {
      {{1, 1, 1}, 1, 1},
      {{2, 5, 3}, 4, 1},
      {{2, 5, 3}, 4, 3},
      {{1, 4, 2}, 3, 4},
      {{2, 6, 2}, 2, 3, {.padding = 1}},
      {{1, 7, 3}, 2, 2, {.stride = 3}},  // gaps between windows
      {{1, 9, 4}, 6, 3, {.stride = 2, .padding = 2, .dilation = 2, .groups = 2}},
      {{2, 8, 3}, 3, 3, {.dilation = 3, .groups = 3}},
      {{1, 2, 2}, 2, 3, {.padding = 3}},  // windows that see only padding
      {{1, 11, 17}, 9, 5, {.padding = 2}},
      {{0, 4, 2}, 3, 2},
      {{2, 4, 0}, 3, 2},
      {{3, 200, 12}, 40, 5, {.padding = 2}, true},
  };
  for (const Case& c : cases)
    for (const bool bias : {true, false}) {
      const int64_t own = c.x[2] / c.o.groups;
      Arrays in{op.draw.normal(c.x), op.draw.normal({c.out, c.window, own})};
      if (bias) in.push_back(op.draw.normal({c.out}));
      Sample& s = op.add(
          text("stride ", c.o.stride, " padding ", c.o.padding, " dilation ", c.o.dilation, " groups ", c.o.groups), in,
          [o = c.o](const Tensors& t) { return conv1d(t[0], t[1], t.size() > 2 ? t[2] : Tensor(), o); },
          [o = c.o](const Arrays& a) { return convolved_sequences(a, o); });
      s.length = static_cast<double>(c.window * own), s.large = c.large;
    }
  const auto refuse = [&](std::vector<std::string> words, const Dims& x, const Dims& w, Conv1dOptions o = {},
                          const Dims& b = {}) {
    op.refuse(std::move(words), [=] { conv1d(reals(x), reals(w), b.rank ? reals(b) : Tensor(), o); });
  };
  refuse({"[2, 3]", "[sequences, length, channels]"}, {2, 3}, {1, 1, 3});
  refuse({"weight", "[2, 3]", "[out, kernel, in / groups]"}, {1, 4, 3}, {2, 3});
  refuse({"[1, 4, 3]", "3 channels", "[2, 2, 5]", "reads 5"}, {1, 4, 3}, {2, 2, 5});
  refuse({"4 channels", "reads 3", "transpose(x, 1, 2)"}, {1, 3, 4}, {2, 2, 3});
  refuse({"window of 4", "sequences of 3", "padding of 0"}, {1, 3, 2}, {1, 4, 2});
  refuse({"window of 3", "dilation of 3", "sequences of 4", "padding of 1"}, {1, 4, 2}, {1, 3, 2},
         {.padding = 1, .dilation = 3});
  refuse({"stride of 0", "at least 1"}, {1, 3, 2}, {1, 2, 2}, {.stride = 0});
  refuse({"padding of -1"}, {1, 3, 2}, {1, 2, 2}, {.padding = -1});
  refuse({"dilation of 0"}, {1, 3, 2}, {1, 2, 2}, {.dilation = 0});
  refuse({"2 groups", "3 channels of the output"}, {1, 3, 4}, {3, 2, 2}, {.groups = 2});
  refuse({"bias [3]"}, {1, 3, 4}, {2, 2, 4}, {}, {3});
  op.refuse({"i64"}, [] { conv1d(integers({1, 3, 2}), integers({1, 2, 2})); });
  op.refuse({"dtypes differ", "f32", "f64"}, [] { conv1d(reals({1, 3, 2}), reals({1, 2, 2}, DType::f64)); });
  return op;
}

// Every pixel adds its window to the output.
Array transposed_convolution(const Arrays& a, const ConvTranspose2dOptions& o) {
  const Array &x = a[0], &w = a[1];
  const int64_t own = w.shape[3], in = x.shape[3];
  const auto size = [](int64_t pixels, int64_t window, int64_t stride, int64_t padding, int64_t more,
                       int64_t dilation) {
    return (pixels - 1) * stride + dilation * (window - 1) + 1 + more - 2 * padding;
  };
  const Dims shape{
      x.shape[0],
      size(x.shape[1], w.shape[1], o.stride.height, o.padding.height, o.output_padding.height, o.dilation.height),
      size(x.shape[2], w.shape[2], o.stride.width, o.padding.width, o.output_padding.width, o.dilation.width),
      own * o.groups};
  std::vector<long double> sums(static_cast<size_t>(numel(shape)));
  Array y(shape);
  for_each_index(x.shape, [&](const Dims& from) {
    const int64_t group = from[3] / (in / o.groups);
    for_each_index({w.shape[1], w.shape[2], own}, [&](const Dims& place) {
      const int64_t h = from[1] * o.stride.height + place[0] * o.dilation.height - o.padding.height,
                    v = from[2] * o.stride.width + place[1] * o.dilation.width - o.padding.width;
      if (h < 0 || h >= shape[1] || v < 0 || v >= shape[2]) return;
      sums[static_cast<size_t>(y.offset({from[0], h, v, group * own + place[2]}))] +=
          static_cast<long double>(x.at(from)) * w.at({from[3], place[0], place[1], place[2]});
    });
  });
  for (size_t i = 0; i < sums.size(); ++i)
    y.v[i] = static_cast<double>(sums[i] + (a.size() > 2 ? a[2].v[i % static_cast<size_t>(shape[3])] : 0));
  return y;
}

OpCase conv_transpose2d_case() {
  OpCase op = row_of("Images", "conv_transpose2d", "(x, weight, bias = {}, ConvTranspose2dOptions options = {})",
                     "y[n, h stride + i dilation - padding, w stride + j dilation - padding, o] = bias[o] + sum of "
                     "x[n, h, w, c] weight[c, i, j, o]: the gradient of conv2d by its images",
                     tolerance::product);
  struct Case {
    Dims x;
    int64_t out;
    Size2 window;
    ConvTranspose2dOptions o = {};
    bool large = false;
  };
  const std::vector<Case> cases = {
      {{1, 1, 1, 1}, 1, 1},
      {{2, 3, 4, 2}, 3, 1},
      {{1, 3, 3, 1}, 2, 3},
      {{2, 4, 5, 3}, 2, {2, 3}},
      {{1, 5, 4, 2}, 3, 3, {.padding = 1}},
      {{2, 3, 2, 2}, 3, 3, {.stride = 2, .padding = 1, .output_padding = 1}},
      {{1, 3, 4, 2}, 1, 4, {.stride = 2, .padding = 1}},
      {{1, 4, 3, 3}, 2, {3, 2}, {.stride = {1, 3}, .padding = {2, 0}, .output_padding = {0, 2}}},
      {{2, 3, 3, 4}, 2, 1, {.stride = 2}},  // pixels between the windows hold only the bias
      {{2, 2, 3, 2}, 2, 2, {.stride = 3, .output_padding = 2}},
      {{2, 4, 4, 4}, 6, 3, {.padding = 1, .groups = 2}},
      {{1, 3, 3, 6}, 3, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 3}},
      {{1, 3, 4, 2}, 3, 3, {.dilation = 2}},
      {{2, 3, 3, 4}, 4, {3, 2}, {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 3}, .groups = 2}},
      {{1, 3, 4, 2}, 2, 2, {.output_padding = 1, .dilation = 2}},
      {{1, 2, 2, 2},
       1,
       2,
       {.stride = 2, .padding = 1, .output_padding = 2, .dilation = 3}},  // output padding not below the stride
      {{1, 4, 4, 3}, 2, 2, {.padding = 2}},                               // padding as large as the window
      {{1, 3, 4, 17}, 9, 3, {.padding = 1}},
      {{1, 2, 3, 9}, 17, 3, {.stride = 2, .padding = 1}},
      {{0, 3, 3, 2}, 2, 3, {.stride = 2}},
      {{2, 3, 3, 2}, 0, 2},
      {{2, 9, 10, 20}, 37, 3, {.padding = 1}, true},
      {{2, 15, 16, 8}, 32, 4, {.stride = 2, .padding = 1}, true},  // several blocks of windows
      {{2, 8, 8, 16}, 16, 5, {.stride = 2, .padding = 2, .output_padding = 1, .groups = 4}, true},
  };
  for (const Case& c : cases)
    for (const bool bias : {true, false}) {
      if (c.large && !bias) continue;
      Arrays in{op.draw.normal(c.x), op.draw.normal({c.x[3], c.window.height, c.window.width, c.out / c.o.groups})};
      if (bias) in.push_back(op.draw.normal({c.out}));
      Sample& s = op.add(
          text("stride ", c.o.stride, " padding ", c.o.padding, " output padding ", c.o.output_padding, " dilation ",
               c.o.dilation, " groups ", c.o.groups),
          in, [o = c.o](const Tensors& t) { return conv_transpose2d(t[0], t[1], t.size() > 2 ? t[2] : Tensor(), o); },
          [o = c.o](const Arrays& a) { return transposed_convolution(a, o); });
      s.length = static_cast<double>(c.window.height * c.window.width * c.x[3] / c.o.groups), s.large = c.large;
    }
  const auto refuse = [&](std::vector<std::string> words, const Dims& x, const Dims& w, ConvTranspose2dOptions o = {},
                          const Dims& b = {}) {
    op.refuse(std::move(words), [=] { conv_transpose2d(reals(x), reals(w), b.rank ? reals(b) : Tensor(), o); });
  };
  refuse({"[2, 3, 4]", "[images, height, width, channels]"}, {2, 3, 4}, {4, 1, 1, 2});
  refuse({"weight", "[2, 3]", "[in, kernel height, kernel width, out / groups]"}, {1, 3, 3, 2}, {2, 3});
  refuse({"[1, 3, 3, 4]", "4 channels", "[2, 2, 2, 3]", "reads 2"}, {1, 3, 3, 4}, {2, 2, 2, 3});
  refuse({"reads 2", "permute(x, {0, 2, 3, 1})"}, {1, 2, 3, 4}, {2, 2, 2, 3});
  refuse({"output_padding of 0 x 2", "stride of 2 x 2", "dilation of 1 x 1"}, {1, 3, 3, 2}, {2, 3, 3, 1},
         {.stride = 2, .output_padding = {0, 2}});
  refuse({"output_padding of -1 x -1"}, {1, 3, 3, 2}, {2, 3, 3, 1}, {.output_padding = -1});
  refuse({"padding of 2 x 2", "nothing", "[1, 2, 2, 2]", "window of 3 x 3"}, {1, 2, 2, 2}, {2, 3, 3, 1},
         {.padding = 2});
  refuse({"stride of 0 x 1"}, {1, 3, 3, 2}, {2, 2, 2, 1}, {.stride = {0, 1}});
  refuse({"padding of -1 x -1"}, {1, 3, 3, 2}, {2, 2, 2, 1}, {.padding = -1});
  refuse({"dilation of 1 x 0"}, {1, 3, 3, 2}, {2, 2, 2, 1}, {.dilation = {1, 0}});
  refuse({"window of 0 x 2"}, {1, 3, 3, 2}, {2, 0, 2, 1});
  refuse({"images of 0 x 3"}, {1, 0, 3, 2}, {2, 1, 1, 1});
  refuse({"2 groups", "3 channels of the input"}, {1, 3, 3, 3}, {3, 2, 2, 2}, {.groups = 2});
  refuse({"0 groups"}, {1, 3, 3, 3}, {3, 2, 2, 2}, {.groups = 0});
  refuse({"bias [2]", "[2, 2, 2, 4]"}, {1, 3, 3, 2}, {2, 2, 2, 4}, {}, {2});
  refuse({"4611686018427387904", "largest size"}, {1, 3, 3, 1}, {1, 1, 1, 1}, {.stride = int64_t{1} << 62});
  op.refuse({"i64"}, [] { conv_transpose2d(integers({1, 3, 3, 2}), integers({2, 2, 2, 1})); });
  op.refuse({"dtypes differ", "f32", "f64"}, [] {
    conv_transpose2d(reals({1, 3, 3, 2}), reals({2, 2, 2, 1}, DType::f64));
  });
  return op;
}

}  // namespace

std::vector<OpCase> convolution_cases() { return {conv1d_case(), conv_transpose2d_case()}; }

}  // namespace isonorm::test
