// Convolution and pooling beyond their rows in tests/op_cases: gradients over several blocks of windows, and ties.
#include "autograd/ops/images.h"
#include "tests/autograd/room.h"

using test::max_difference;
using test::randn;

TEST_CASE("gradients of a convolution are the sums over all windows, in however many blocks these are") {
  // 3 x 42 x 21 windows of 9 x 24 numbers in f64, 4.6 MB: five blocks, whose borders are inside of images and of lines.
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

namespace {

// A convolution and its gradients by their definition, over positions inside of the image only. y [out_h, out_w, out].
struct Convolved {
  std::vector<double> y, dx, dw;
  Convolved(const Tensor& tx, const Tensor& tw, const Tensor& tg, int64_t stride, int64_t pad, int64_t dilation,
            int64_t groups)
      : y(tg.numel()), dx(tx.numel()), dw(tw.numel()) {
    const std::vector<double> x = tx.to_vector<double>(), w = tw.to_vector<double>(), g = tg.to_vector<double>();
    const int64_t height = tx.size(1), width = tx.size(2), in = tx.size(3), out = tw.size(0), own = tw.size(3);
    for (int64_t at = 0; at < tg.numel(); ++at) {
      const int64_t o = at % out, ox = at / out % tg.size(2), oy = at / out / tg.size(2) % tg.size(1),
                    image = at / (out * tg.size(2) * tg.size(1));
      for (int64_t i = 0; i < tw.size(1); ++i)
        for (int64_t j = 0; j < tw.size(2); ++j) {
          const int64_t iy = oy * stride + i * dilation - pad, ix = ox * stride + j * dilation - pad;
          if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
          for (int64_t c = 0; c < own; ++c) {
            const int64_t at_x = ((image * height + iy) * width + ix) * in + o / (out / groups) * own + c,
                          at_w = ((o * tw.size(1) + i) * tw.size(2) + j) * own + c;
            y[at] += x[at_x] * w[at_w];
            dx[at_x] += g[at] * w[at_w];
            dw[at_w] += g[at] * x[at_x];
          }
        }
    }
  }
};

// Equal up to rounding, infinite and NaN in the same places.
void check_alike(const Tensor& found, const std::vector<double>& expected, double bound) {
  const std::vector<double> v = found.to_vector<double>();
  size_t wrong = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const double e = expected[i];
    wrong += std::isfinite(e) ? !(std::abs(v[i] - e) <= bound) : !(v[i] == e || (std::isnan(v[i]) && std::isnan(e)));
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("padding is not multiplied: an infinite weight or gradient over it changes no other entry") {
  struct Case {
    int64_t in, out, groups, k, stride, pad, dilation;
  };
  for (const auto& [in, out, groups, k, stride, pad, dilation] :
       {Case{1, 1, 1, 3, 1, 1, 1}, Case{3, 4, 1, 3, 1, 1, 1}, Case{2, 16, 1, 5, 1, 2, 1}, Case{4, 4, 4, 3, 1, 1, 1},
        Case{16, 2, 1, 3, 1, 2, 2}, Case{3, 4, 1, 3, 2, 1, 1}, Case{2, 4, 2, 3, 2, 2, 2}, Case{3, 8, 1, 1, 1, 1, 1}})
    for (const double odd : {HUGE_VAL, -HUGE_VAL, static_cast<double>(NAN)})
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
        CAPTURE(in, out, groups, k, stride, pad, dilation, odd, dtype);
        const int64_t height = 4, width = 6, own = in / groups;
        const Tensor x = require_grad(randn({2, height, width, in}, 1).to(dtype));
        const Tensor finite = randn({out, k, k, own}, 2).to(dtype);
        const Conv2dOptions options{.stride = stride, .padding = pad, .dilation = dilation, .groups = groups};
        const Tensor first = conv2d(x, finite, {}, options), dy = randn(first.shape(), 3).to(dtype);
        // Sums of at most 2 x 48 or k k in products of numbers below 5; bf16 is rounded once more.
        const double bound = (dtype == DType::bf16 ? 0x1p-8 : 0) * 200 + 96 * 25 * 20 * epsilon(acc_dtype(dtype));
        for (int64_t place = 0; place < k * k; place += 2) {  // every second place of the window
          const Tensor weight = require_grad(clone(detach(finite)));
          copy_into(weight.detach()(0, place / k, place % k, 0), full({}, odd, {dtype}));
          const Tensor y = conv2d(x, weight, {}, options);
          const auto g = grad(y, {x}, dy);
          const Convolved e(x, weight, dy, stride, pad, dilation, groups);
          check_alike(y, e.y, bound);
          check_alike(g[0], e.dx, bound);
        }
        for (const auto& [oy, ox] : {std::pair<int64_t, int64_t>{0, 0}, {-1, -1}, {1, 0}}) {
          const Tensor weight = require_grad(clone(detach(finite))), odd_dy = clone(dy);
          copy_into(odd_dy(1, oy, ox, 0), full({}, odd, {dtype}));
          const auto g = grad(conv2d(x, weight, {}, options), {x, weight}, odd_dy);
          const Convolved e(x, weight, odd_dy, stride, pad, dilation, groups);
          check_alike(g[0], e.dx, bound);
          check_alike(g[1], e.dw, bound);
        }
      }
}

TEST_CASE("a filter's gradient has the same bits with and without other filters") {
  // With few channels and many outputs the kernel sums its transpose, with a single output itself; in two blocks of
  // lines.
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
