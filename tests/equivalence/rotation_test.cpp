// Models in a rotated basis of their stream: conversion compared with sums written out, and the results of verify.
#include "equivalence/verify/file_conversion.h"
#include "equivalence/verify/up_to_rotation.h"
#include "streams/rotation.h"
#include "tests/equivalence/gpt2.h"
#include "tests/equivalence/model_files.h"

namespace {

constexpr int64_t kWidth = 9;
constexpr double kNothing = 0;

struct File {
  TensorMap state;
  streams::Plan plan;
};

// A GPT-2 with folded gains, as a model whose norms divide by the length of a row.
File rms_gpt2(DType dtype = DType::f32, Form form = Form::rms_norm) {
  const TensorMap state = gpt2(kWidth, 20);
  Conversion c = convert(state, gpt2_plan(state, kWidth), form, dtype);
  if (form == Form::rms_norm) c.plan.form = Form::uncentred_rms_norm;
  return {c.state, c.plan};
}

File rotated(File file, const Tensor& q, std::optional<DType> dtype = {}) {
  file.plan.rotation = q;
  Conversion c = convert(file.state, file.plan, file.plan.form, dtype);
  return {c.state, c.plan};
}

// x times Q along `dim`, with the sums written out.
std::vector<double> times_written_out(const Tensor& x, int dim, const Tensor& q) {
  const std::vector<double> v = x.to(DType::f64).to_vector<double>(), m = q.to_vector<double>();
  std::vector<double> y(v.size());
  const int64_t d = x.size(dim);
  int64_t inner = 1;
  for (int i = dim + 1; i < x.rank(); ++i) inner *= x.size(i);
  for (int64_t at = 0; at < x.numel(); ++at) {
    const int64_t j = at / inner % d, first = at - j * inner;
    for (int64_t i = 0; i < d; ++i) y[at] += v[first + i * inner] * m[i * d + j];
  }
  return y;
}

RotationComparison up_to(const File& a, const File& b) {
  return compare_up_to_rotation(a.state, a.plan, b.state, b.plan);
}

// Moves entry `at` of a tensor by `by` half units in the last place of its largest entry.
File with_error(File file, const std::string& name, int64_t at, double by) {
  const Tensor& t = file.state.at(name);
  std::vector<double> v = t.to(DType::f64).to_vector<double>();
  v[at] += by * epsilon(t.dtype()) / 2 * largest(t);
  file.state = with_tensor(file.state, name, from_vector(v, t.shape()).to(t.dtype()));
  return file;
}

}  // namespace

TEST_CASE("rotation: writers become Q^T W and readers A Q, rounded once; all else stays, and what readers see") {
  for (Form form : {Form::rms_norm, Form::crms_isometric})
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      INFO(name_of(form) << ' ' << name_of(dtype));
      const File before = rms_gpt2(dtype, form);
      const int64_t d = before.plan.stored_width();
      const Tensor q = streams::haar_rotation(d, 4);
      const File after = rotated(before, q);
      CHECK_FALSE(after.plan.rotation.defined());
      REQUIRE(after.state.size() == before.state.size());
      for (const auto& [name, x] : before.state) {
        INFO(name);
        const Tensor& y = after.state.at(name);
        const int dim = before.plan.dim_of(name);
        CHECK(y.dtype() == x.dtype());
        const std::vector<double> found = y.to(DType::f64).to_vector<double>(),
                                  expected =
                                      dim < 0 ? x.to(DType::f64).to_vector<double>() : times_written_out(x, dim, q);
        // One rounding, plus the rounding of two sums of d products in f64.
        const double f64 = dim < 0 ? 0 : 2 * std::sqrt(9.0) * epsilon(DType::f64) * 3 * largest(x);
        for (size_t i = 0; i < found.size(); ++i)
          if (!(std::abs(found[i] - expected[i]) <= epsilon(dtype) / 2 * std::abs(expected[i]) * 1.0001 + f64))
            FAIL(i << ": " << found[i] << ", expected " << expected[i]);
      }
      CHECK(compare_streams(before.state, before.plan, after.state, after.plan).explained());
      // The same in pieces, with checks.
      File seen = before;
      seen.plan.rotation = q;
      FileConversion pieces(seen.state, seen.plan, seen.plan.form, {}, 40);
      REQUIRE(pieces.check([] { return true; }));
      CHECK(pieces.exact().equivalent());
      if (dtype != DType::f64) CHECK(pieces.stored()->equivalent());
      const LazyState result = pieces.result();
      const double once_more =
          epsilon(dtype) + 2 * std::sqrt(9.0) * 3 * epsilon(DType::f64);  // as above, relative to the largest entry
      for (const auto& [name, tensor] : after.state)
        CHECK(largest(result.read(name).to(DType::f64) - tensor.to(DType::f64)) <= once_more * largest(tensor));
    }
}

TEST_CASE("rotation: verify finds it, in every dtype and form, and a wrong entry of any tensor") {
  struct Case {
    Form form;
    DType dtype, other;
    double power;  // detectable error, in half units in the last place of the largest entry
  };
  const Case cases[] = {{Form::rms_norm, DType::f32, DType::f32, 100},
                        {Form::rms_norm, DType::f32, DType::f64, 1e11},
                        {Form::rms_norm, DType::f64, DType::f64, 1e5},
                        {Form::rms_norm, DType::bf16, DType::bf16, 100},
                        {Form::crms_isometric, DType::f32, DType::f32, 100}};
  for (const Case& c : cases) {
    INFO(name_of(c.form) << ' ' << name_of(c.dtype) << ' ' << name_of(c.other));
    File a = rms_gpt2(c.dtype, c.form);
    const int64_t d = a.plan.stored_width();
    const File b = rotated(a, streams::haar_rotation(d, 6), c.other), next = rotated(b, streams::haar_rotation(d, 7));
    if (c.form == Form::rms_norm) a.plan.form = Form::rms_norm;  // says only that it was converted
    for (const auto& [x, y] :
         std::vector<std::pair<const File*, const File*>>{{&a, &b}, {&b, &a}, {&b, &next}, {&a, &next}, {&a, &a}}) {
      const RotationComparison same = up_to(*x, *y);
      INFO(same.entries.reason);
      CHECK(same.entries.equivalent());
      CHECK_THAT(same.found, Contains("found from"));
    }
    CHECK_FALSE(compare_entries(a.state, a.plan, b.state, b.plan).equivalent());
    for (const auto& [name, tensor] : b.state)
      for (int64_t at : {int64_t{0}, tensor.numel() - 1}) {
        INFO(name << ' ' << at);
        const EntryComparison wrong = up_to(a, with_error(b, name, at, c.power)).entries;
        CHECK_FALSE(wrong.equivalent());
        CHECK_THAT(wrong.reason, Contains(name));
      }
    CHECK(up_to(a, with_error(b, "wte.weight", 3, kNothing)).entries.equivalent());
  }
}

TEST_CASE("rotation: a direction that no row has, 1 of a file that came by crms_norm, is no obstacle") {
  const TensorMap state = gpt2(kWidth, 20);
  const Conversion crms = convert(state, gpt2_plan(state, kWidth), Form::crms_norm);
  const Conversion rms = convert(crms.state, crms.plan, Form::rms_norm);
  File a{rms.state, rms.plan};
  a.plan.form = Form::uncentred_rms_norm;
  const File b = rotated(a, streams::haar_rotation(kWidth, 3));
  CHECK(up_to(a, b).entries.equivalent());
  CHECK_FALSE(up_to(a, with_error(b, "h.0.mlp.c_fc.weight", 5, 100)).entries.equivalent());
}

TEST_CASE("rotation: a map that is none is not taken for one") {
  const File a = rms_gpt2();
  const Tensor q = streams::haar_rotation(kWidth, 2);
  const auto differs = [&](const File& b, const char* says) {
    const RotationComparison c = up_to(a, b);
    CHECK_FALSE(c.entries.equivalent());
    CHECK_THAT(c.entries.reason, Contains(says));
  };
  // Rotated readers with unrotated writers; everything doubled; zeros.
  File b = rotated(a, q), c = a, twice = b, zero = a;
  for (const auto& [name, tensor] : a.state) {
    if (a.plan.reader(name)) c.state = with_tensor(c.state, name, b.state.at(name));
    if (a.plan.dim_of(name) >= 0) twice.state = with_tensor(twice.state, name, b.state.at(name) * 2.0);
    zero.state = with_tensor(zero.state, name, zeros(tensor.shape()));
  }
  differs(c, "");
  differs(twice, "is no rotation");
  differs(zero, "is no rotation");
  const RotationComparison none = up_to(zero, zero);
  CHECK_THAT(none.entries.reason, Contains("are 0"));
  // Rows that lie in two directions of nine.
  File flat = a;
  for (const auto& [name, t] : a.state) {
    const int dim = a.plan.dim_of(name);
    if (dim < 0) continue;
    Tensor mask = zeros({kWidth});
    mask.mutable_data<float>()[0] = mask.mutable_data<float>()[4] = 1;
    Dims along;
    for (int i = 0; i < t.rank(); ++i) along.push_back(i == dim ? kWidth : 1);
    flat.state = with_tensor(flat.state, name, t * reshape(mask, along));
  }
  CHECK_THAT(up_to(flat, rotated(flat, q)).entries.reason, Contains("their rows do not reach 8 of 9 directions"));
}

TEST_CASE("rotation: only norms that take a row's length allow it, with the reason for the others") {
  const TensorMap state = gpt2(kWidth, 20);
  const streams::Plan layer = gpt2_plan(state, kWidth);
  const auto refused = [](TensorMap s, streams::Plan plan, const char* says) {
    plan.rotation = streams::haar_rotation(plan.stored_width(), 1);
    CHECK_THROWS_WITH(convert(s, plan, plan.form), Contains(says));
    CHECK_THROWS_WITH(compare_up_to_rotation(s, plan, s, plan), Contains("cannot be compared"));
  };
  refused(state, layer, "LayerNorm subtracts the mean");
  const Conversion crms = convert(state, layer, Form::crms_norm);
  refused(crms.state, crms.plan, "do not divide a stored row by its length");
  streams::Plan gains = layer;
  gains.form = Form::uncentred_rms_norm;
  refused(state, gains, "norm 'h.0.ln_1' has a gain or a bias");
  File rms = rms_gpt2();
  rms.plan.rotation = streams::haar_rotation(kWidth, 1);
  CHECK_THROWS_WITH(convert(rms.state, rms.plan, Form::crms_isometric), Contains("a rotation keeps the form"));
}

TEST_CASE(
    "rotation: the verdict on a rotated model is 'not shown' without --up-to, 'same' with it, by logits 'different'") {
  manual_seed(3);
  const ModelFile file = converted(file_of(small_gpt({.affine = true}), {}, DType::f32), Form::rms_norm);
  const ModelOptions options(file.description);
  const auto model = options.build();
  streams::Plan plan = streams::plan_of(*model);
  plan.form = Form::uncentred_rms_norm, plan.rotation = streams::hadamard_rotation(8, 9);
  ModelOptions turned = options;
  turned.stream() = {.form = Form::uncentred_rms_norm};
  const ModelFile other{convert(file.state, plan, plan.form).state, turned.description()};
  const Verification without = verify_models(file, other), with = verify_models(file, other, {}, kCpu, true);
  CHECK_FALSE(without.equivalent());
  CHECK_THAT(without.sentence(), StartsWith("undecided: the entries differ: ") && Contains("try --up-to rotation"));
  CHECK(with.equivalent());
  CHECK_THAT(with.sentence(),
             StartsWith("equivalent: ") && Contains("Up to a rotation of the stream every entry agrees"));
  const ModelFile wrong = edited(other, "blocks.1.mlp.fc1.weight", [](std::vector<double>& v) { v[5] += 0.01; });
  for (bool up_to : {false, true}) {
    const Verification v = verify_models(file, wrong, {}, kCpu, up_to);
    CHECK_THAT(v.sentence(), StartsWith("different: the two are not one function: "));
    if (up_to) CHECK_THAT(v.sentence(), Contains("blocks.1.mlp.fc1.weight"));
  }
}
