// The coordinates of a stream: the algebra that makes three forms one model.
#include "tests/support/catch.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "nn/linear.h"
#include "nn/residual/pre_norm.h"
#include "streams/parametrize.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::compress_writer;
using streams::Form;
using streams::form_named;
using streams::helmert;
using streams::Layout;
using streams::parametrize;
using streams::Stored;
using streams::Stream;

namespace {
constexpr TensorOptions kF64{DType::f64};
const Form kForms[] = {Form::layer_norm, Form::rms_norm, Form::crms_norm, Form::crms_isometric};

// A norm with gain and bias, and what reads through it.
struct Reader : Module {
  PreNorm& norm;
  Linear& head;
  Reader(int64_t d, int64_t out) : norm(add("norm", PreNorm(d, {.affine = true}))), head(add("head", Linear(d, out))) {}
};
}  // namespace

TEST_CASE("the Helmert basis is orthonormal and spans the zero-mean rows") {
  for (int64_t d : {2, 3, 7, 64}) {
    const std::vector<double> q = helmert(d).to_vector<double>();
    double worst = 0;
    for (int64_t i = 0; i < d - 1; ++i)
      for (int64_t j = 0; j < d - 1; ++j) {
        double dot = 0, column = 0;
        for (int64_t r = 0; r < d; ++r) dot += q[r * (d - 1) + i] * q[r * (d - 1) + j], column += q[r * (d - 1) + i];
        worst = std::max({worst, std::abs(dot - (i == j)), std::abs(column)});
      }
    CHECK(worst < 4 * 0x1p-52 * std::sqrt(d));
  }
}

TEST_CASE("in every form a reader sees of a writer what it sees in Pre-LN") {
  // A norm-free reader of a written row: A P W in the centred forms, by naive sums.
  manual_seed(3);
  const int64_t d = 9, in = 4, out = 5;
  const Tensor w = randn({d, in}, kF64), a = randn({out, d}, kF64);
  const std::vector<double> pw = w.to_vector<double>(), pa = a.to_vector<double>();
  std::vector<double> expected(out * in);
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i) {
      double mean = 0;
      for (int64_t r = 0; r < d; ++r) mean += pw[r * in + i] / d;
      for (int64_t r = 0; r < d; ++r) expected[o * in + i] += pa[o * d + r] * (pw[r * in + i] - mean);
    }
  for (Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    const Stream s(form, d);
    INFO(name_of(form));
    CHECK(s.write(w, 0).size(0) == s.stored_width());
    CHECK(s.read(a).size(1) == s.stored_width());
    check_close(matmul(s.read(a), s.write(w, 0)), from_vector(expected, {out, in}), 64 * 0x1p-52);
  }
}

TEST_CASE("a norm with gain and bias, its readers and its writers give one function in all forms") {
  const int64_t d = 8, out = 3;
  manual_seed(5);
  const Tensor x = randn({4, d}, kF64) + 2.0, gain = randn({d}, kF64), bias = randn({d}, kF64);
  const Tensor weight = randn({out, d}, kF64), offset = randn({out}, kF64);
  Tensor expected;
  for (Form form : kForms) {
    INFO(name_of(form));
    const Stream s(form, d);
    Reader net(d, out);
    net.to(DType::f64);
    copy_into(net.norm.weight, gain);
    copy_into(net.norm.bias, bias);
    copy_into(net.head.weight, weight);
    copy_into(net.head.bias, offset);
    parametrize(net, Layout().reads("head", "norm"), s);
    Residual r{s.write(x, 1), {}};
    const Tensor y = net.head(net.norm.read(r));
    if (!expected.defined()) {
      expected = y;
      continue;
    }
    check_close(y, expected, 200 * 0x1p-52);
  }
}

TEST_CASE("the entry that compressed rows do not store is as exact as the others") {
  // Minus the sum of d - 1 entries, it would hold a rounding error that they share d - 1 times.
  const int64_t d = 96, columns = 64;
  manual_seed(11);
  const Tensor x = randn({d, columns}, {DType::f64}) + 300;
  const std::vector<double> stored = compress_writer(x, 0).to_vector<double>(), raw = x.to_vector<double>();
  double worst = 0;
  for (int64_t c = 0; c < columns; ++c) {
    long double mean = 0, last = 0;
    for (int64_t r = 0; r < d; ++r) mean += static_cast<long double>(raw[r * columns + c]) / d;
    for (int64_t r = 0; r < d - 1; ++r) last -= stored[r * columns + c];
    const long double exact = raw[(d - 1) * columns + c] - mean;
    worst = std::max(worst, static_cast<double>(std::abs(last - exact)));
  }
  // d roundings of partial sums below 32, so of up to 8 eps, add up like sqrt(d) of them. That of the mean, shared,
  // would be up to 128 eps d.
  const double in_eps = worst / 0x1p-52;
  CHECK(in_eps <= 8 * std::sqrt(static_cast<double>(d)));
}

TEST_CASE("bf16 goes through the maps in f32 and is rounded once") {
  manual_seed(12);
  const int64_t d = 33;
  const Tensor writer = (randn({d, 7}) + 0.5).to(DType::bf16), reader = (randn({7, d}) + 0.5).to(DType::bf16);
  const auto once = [](const Tensor& x) { return x.to(DType::bf16); };
  const auto equal = [](const Tensor& a, const Tensor& b) {
    CHECK(a.dtype() == DType::bf16);
    CHECK(a.to_vector<double>() == b.to_vector<double>());
  };
  for (Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    INFO(name_of(form));
    const Stream stream(form, d, Stored::raw, true);
    equal(stream.write(writer, 0), once(stream.write(writer.to(DType::f32), 0)));
    equal(stream.read(reader), once(stream.read(reader.to(DType::f32))));
    Reader net(d, 7);
    copy_into(net.norm.weight, once(randn({d})).to(DType::f32));
    copy_into(net.norm.bias, once(randn({d})).to(DType::f32));
    copy_into(net.head.weight, reader.to(DType::f32));
    copy_into(net.head.bias, zeros({7}));
    parametrize(net, Layout().reads("head", "norm"), stream);
    const Tensor wide = net.head.weight(), wide_bias = net.head.bias();
    net.to(DType::bf16);
    equal(net.head.weight(), once(wide));
    equal(net.head.bias(), once(wide_bias));
  }
  CHECK(relative_deviation(writer - mean(writer, {0}, true), Stream(Form::rms_norm, d).write(writer, 0)) > 0);
}

TEST_CASE("wrong widths and names are refused with both values") {
  CHECK_THROWS_WITH(Stream(Form::rms_norm, 1), Contains("width 1"));
  CHECK_THROWS_WITH(form_named("batch_norm"), Contains("batch_norm") && Contains("crms_isometric"));
  const Stream s(Form::rms_norm, 8);
  CHECK_THROWS_WITH(s.write(empty({7, 3}), 0), Contains("[7, 3]") && Contains("8"));
  Linear wide(4, 9);
  CHECK_THROWS_WITH(parametrize(wide, Layout().writes("weight").writes("bias"), s), Contains("9") && Contains("8"));
  const Stream compressed(Form::crms_norm, 8, Stored::mapped);
  Reader gained(8, 3);
  CHECK_THROWS_WITH(parametrize(gained, Layout().reads("head", "norm"), compressed), Contains("gain"));
}
