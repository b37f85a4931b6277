// The coordinates of a stream in floating point: rounding, and arguments that are refused.
#include "nn/linear.h"
#include "nn/residual/pre_norm.h"
#include "streams/parametrize.h"
#include "tests/equivalence/room.h"

using namespace isonorm::nn;
using streams::compress_writer;
using streams::form_named;
using streams::Layout;
using streams::parametrize;
using streams::Stream;

namespace {

// A norm with gain and bias, and a reader.
struct Reader : Module {
  PreNorm& norm;
  Linear& head;
  Reader(int64_t d, int64_t out) : norm(add("norm", PreNorm(d, {.affine = true}))), head(add("head", Linear(d, out))) {}
};
}  // namespace

TEST_CASE("the entry that compressed rows do not store is as exact as the others") {
  // Computed as minus the sum of d - 1 entries it would contain their common rounding error d - 1 times.
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
  // d roundings of partial sums below 32, each up to 8 eps, add up to about sqrt(d) of them. A rounding error of the
  // mean, which all entries have in common, would add up to 128 eps d.
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
