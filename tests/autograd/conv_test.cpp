// What the rows of convolution and pooling do not reach: gradients over several blocks of windows, and ties.
#include "autograd/ops/conv.h"

#include "autograd/engine.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/pool.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "tests/support/catch.h"
#include "tests/support/random.h"

using namespace isonorm;
using test::max_difference;
using test::randn;

TEST_CASE("gradients of a convolution are the sums over all windows, in however many blocks these are") {
  // 3 x 42 x 21 windows of 9 x 24 numbers in f64, 4.6 MB: five blocks, whose borders lie inside of images and of lines.
  constexpr int64_t n = 3, height = 42, width = 41, in = 24, out = 4, k = 3, stride_w = 2;
  constexpr int64_t out_h = 42, out_w = 21;
  for (const int64_t groups : {1, 2}) {
    const int64_t own = in / groups;
    const Tensor tx = require_grad(randn({n, height, width, in}, 1)), tw = require_grad(randn({out, k, k, own}, 2)),
                 tb = require_grad(randn({out}, 3)), tg = randn({n, out_h, out_w, out}, 4);
    const Tensor y = conv2d(tx, tw, tb, {.stride = {1, stride_w}, .padding = 1, .groups = groups});
    REQUIRE(y.shape() == tg.shape());
    backward(sum(y * tg));
    const std::vector<double> x = tx.to_vector<double>(), w = tw.to_vector<double>(), g = tg.to_vector<double>();
    std::vector<double> dx(x.size()), dw(w.size()), db(out);
    for (int64_t image = 0; image < n; ++image)
      for (int64_t oy = 0; oy < out_h; ++oy)
        for (int64_t ox = 0; ox < out_w; ++ox)
          for (int64_t o = 0; o < out; ++o) {
            const double d = g[((image * out_h + oy) * out_w + ox) * out + o];
            db[o] += d;
            for (int64_t i = 0; i < k; ++i)
              for (int64_t j = 0; j < k; ++j) {
                const int64_t iy = oy + i - 1, ix = ox * stride_w + j - 1;
                if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
                for (int64_t c = 0; c < own; ++c) {
                  const size_t at_x = ((image * height + iy) * width + ix) * in + o / (out / groups) * own + c;
                  const size_t at_w = ((o * k + i) * k + j) * own + c;
                  dx[at_x] += d * w[at_w];
                  dw[at_w] += d * x[at_x];
                }
              }
          }
    // Sums of up to 36 and of 2,646 products of numbers below 5.
    CHECK(max_difference(tx.grad(), from_vector(dx, tx.shape())) <= 36 * 25 * 0x1p-52);
    CHECK(max_difference(tw.grad(), from_vector(dw, tw.shape())) <= 2646 * 25 * 0x1p-52);
    CHECK(max_difference(tb.grad(), from_vector(db, tb.shape())) <= 2646 * 5 * 0x1p-52);
  }
}

TEST_CASE("a filter's gradient has the same bits with other outputs beside it and without") {
  // Of few channels and many outputs it is summed as its transpose, of a single output as it is; in two blocks of lines.
  const auto [stride, dilation, groups] = GENERATE(table<int64_t, int64_t, int64_t>({{1, 1, 1}, {2, 1, 2}, {1, 2, 2}}));
  const DType dtype = GENERATE(DType::f32, DType::f64);
  constexpr int64_t own = 3, each = 32;  // channels and outputs of a group
  CAPTURE(stride, dilation, groups, dtype);
  const Conv2dOptions options{.stride = stride, .padding = 1, .dilation = dilation};
  Conv2dOptions of_all = options;
  of_all.groups = groups;
  const Tensor x = randn({2, 120, 200, own * groups}, 1, 0, 1, dtype);
  const Tensor w = require_grad(randn({each * groups, 3, 3, own}, 2, 0, 1, dtype));
  const Tensor y = conv2d(x, w, {}, of_all), dy = randn(y.shape(), 3, 0, 1, dtype);
  const Tensor dw = grad({y}, {w}, {dy})[0];
  for (int64_t o = 0; o < each * groups; o += 13) {
    const Tensor one = require_grad(narrow(detach(w), 0, o, 1));
    const Tensor alone = conv2d(narrow(x, 3, o / each * own, own), one, {}, options);
    const Tensor expected = grad({alone}, {one}, {narrow(dy, 3, o, 1)})[0];
    CHECK(narrow(dw, 0, o, 1).to_vector<double>() == expected.to_vector<double>());
  }
}

TEST_CASE("of equal elements the first one is a window's largest, and takes the gradient") {
  const Tensor x = require_grad(from_vector(std::vector<double>{3, 3, 1, 3, 3, 2}, {1, 2, 3, 1}));
  backward(sum(max_pool2d(x, 2, {.stride = Size2{1}})));
  // Windows {3, 3, 3, 3} and {3, 1, 3, 2}.
  CHECK(x.grad().to_vector<double>() == std::vector<double>{1, 1, 0, 0, 0, 0});
}
