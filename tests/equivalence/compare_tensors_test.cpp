// Comparison of the tensors of two programs: a forged entry, NaN, empty files, missing partners, and patterns of a
// difference that suggest a cause.
#include "equivalence/explain/compare_tensors.h"

#include <set>

#include "equivalence/lockstep/training.h"
#include "streams/coordinates.h"
#include "tests/equivalence/room.h"

namespace {

Tensor copy_of(const Tensor& x) {
  const Tensor c = empty_like(x);
  copy_into(c, x);
  return c;
}

TensorMap map_of(std::initializer_list<std::pair<const char*, Tensor>> tensors) {
  TensorMap m;
  for (const auto& [name, tensor] : tensors) m.add(name, tensor);
  return m;
}
TensorMap tensors(const Tensor& weight, const Tensor& bias) {
  return map_of({{"fc.weight", weight}, {"fc.bias", bias}});
}
TensorMap only(const Tensor& x) { return map_of({{"w", x}}); }

struct Drawn {
  Tensor weight, bias;
};
Drawn drawn() {
  manual_seed(4);
  const Tensor weight = randn({6, 6}, {DType::f64});
  return {weight, randn({6}, {DType::f64})};
}

std::string said(const TensorMap& a, const TensorMap& b, const ParameterMap& map = {},
                 const CompareTensorsOptions& o = {}) {
  const TensorsComparison r = compare_tensors(a, b, map, o);
  CHECK(r.equivalent() == r.sentence().starts_with("equivalent"));
  return r.sentence();
}

// A gradient below this share of the largest gradient may be rounding noise: 1000 eps, at most 1 %.
double noise_share(DType d) { return d == DType::f64 ? 1000 * 0x1p-52 : d == DType::f32 ? 1000 * 0x1p-23 : 1e-2; }

// Gradients with largest entry 2, and a second tensor with six entries, the largest of size `largest`.
TensorMap beside_a_large_one(DType dtype, double largest, const std::vector<double>& small) {
  return map_of({{"attn.key.bias", (from_vector(small, {6}) * largest).to(dtype)},
                 {"fc.weight", from_vector<double>({0.5, -2, 1, 0.25}, {2, 2}).to(dtype)}});
}

const CompareTensorsOptions kGradients = {.gradients = true};
const std::vector<double> kSmall = {1, -0.5, 0.25, 0.75, -0.125, 0.5};
const std::pair<const char*, std::vector<double>> kForgeries[] = {
    {"zeros", {0, 0, 0, 0, 0, 0}},
    {"sign", {-1, 0.5, -0.25, -0.75, 0.125, -0.5}},
    {"half", {0.5, -0.25, 0.125, 0.375, -0.0625, 0.25}},
    {"one entry", {1, -0.5, 0.25, 0.625, -0.125, 0.5}},
};

}  // namespace

TEST_CASE("compare tensors: one entry off by 1e-9 of its tensor's largest is found and named") {
  const auto [weight, bias] = drawn();
  const Tensor forged = copy_of(weight);
  double most = 0;
  for (double v : weight.to_vector<double>()) most = std::max(most, std::abs(v));
  forged.mutable_data<double>()[16] += 1e-9 * most;
  const TensorsComparison r = compare_tensors(tensors(weight, bias), tensors(forged, bias));
  CHECK_FALSE(r.equivalent());
  REQUIRE(r.first_difference);
  CHECK(r.first_difference->place.tensor == "fc.weight");
  CHECK(r.first_difference->place.index == Dims{2, 4});
  CHECK(std::abs(r.first_difference->place.deviation - 1e-9) < 1e-14);
  CHECK(r.likely_cause.empty());
  CHECK_THAT(r.sentence(),
             Contains("fc.weight[2, 4] is ") && Contains("1.0e-09") && Contains("(1 of 2 tensors differs)"));
  CHECK(compare_tensors(tensors(weight, bias), tensors(forged, bias), {}, {.tolerance = 2e-9}).equivalent());
  // With only one tensor, the message says nothing about an order.
  TensorMap one, off;
  one.add("w", weight), off.add("w", forged);
  CHECK_THAT(said(one, off), Contains("(1 of 1 tensor differs)\n  no cause was found; tested: "));
  // f64 compared with f32: the tolerance is f32's.
  CHECK_THAT(said(tensors(weight, bias), tensors(weight.to(DType::f32), bias)), Contains("equivalent: 2 tensors"));
  const reports::Document d = document_of(r);
  CHECK_THAT(r.sentence(), StartsWith(closing(d)));
  CHECK(d.tables[0].rows[0].back().text == "different");
  CHECK(d.tables[0].rows[1].back().text == "equivalent");
}

TEST_CASE("compare tensors: NaN, nothing and missing partners are never the same; equal bits are said to be") {
  const auto [weight, bias] = drawn();
  const TensorMap a = tensors(weight, bias);
  const TensorsComparison equal = compare_tensors(a, tensors(copy_of(weight), bias));
  CHECK(equal.equivalent());
  CHECK(equal.identical);
  CHECK_THAT(equal.sentence(), Contains("equal to the last bit"));
  const Tensor nan = copy_of(weight);
  nan.mutable_data<double>()[3] = NAN;
  CHECK_THAT(said(a, tensors(nan, bias)), Contains("different: fc.weight[0, 3] is nan"));
  CHECK_THAT(said(tensors(nan, bias), tensors(nan, bias)), Contains("different: fc.weight[0, 3] is nan"));
  CHECK_THAT(said(TensorMap(), TensorMap()), Contains("different: no tensors were compared"));
  CHECK_THAT(said(a, {}), Contains("only the first has fc.weight (2 tensors without partner)"));
  TensorMap more = tensors(weight, bias);
  more.add("extra", bias);
  CHECK_THAT(said(a, more), Contains("only the second has extra"));
  CHECK_THAT(said(more, a), Contains("only the first has extra"));
  CHECK(compare_tensors(more, a, ParameterMap().leave_out("extra")).equivalent());
  TensorMap empty_one = map_of({{"x", empty({0, 3}, {DType::f64})}});
  CHECK_THAT(said(empty_one, empty_one), Contains("different: no entries were compared"));
  empty_one.add("y", bias);  // an empty tensor among others is no difference
  CHECK(compare_tensors(empty_one, empty_one).identical);
}

TEST_CASE("compare tensors: equal infinities are equal, and the finite entries are still compared") {
  constexpr double kInf = INFINITY;
  const auto mask = [](double first, double second) { return only(tensor<double>({1, first, -2, second})); };
  const TensorMap a = mask(-kInf, kInf);
  CHECK(compare_tensors(a, mask(-kInf, kInf)).identical);
  // Off by 1e-9 of the largest finite entry, 2.
  CHECK_THAT(said(a, only(tensor<double>({1, -kInf, -2 + 2e-9, kInf}))),
             Contains("different: w[2] is -1.999999998, in the reference -2: 1.0e-09"));
  CHECK(compare_tensors(a, only(tensor<double>({1, -kInf, -2 + 1e-10, kInf}))).equivalent());
  CHECK_THAT(said(a, mask(kInf, kInf)), Contains("different: w[1] is inf, in the reference -inf"));
  CHECK_THAT(said(a, mask(-kInf, 5)), Contains("different: w[3] is 5, in the reference inf"));
  CHECK_THAT(said(mask(-kInf, 5), a), Contains("different: w[3] is inf, in the reference 5"));
  CHECK_THAT(said(mask(NAN, 5), mask(NAN, 5)), Contains("different: w[1] is nan, in the reference nan"));
  CHECK(compare_tensors(only(tensor<double>({kInf, kInf})), only(tensor<double>({kInf, kInf}))).equivalent());
  CHECK(compare_tensors(only(tensor<double>({0, -kInf})), only(tensor<double>({0, -kInf}))).equivalent());  // a mask
  CHECK(compare_tensors(only(tensor<double>({0, -kInf})), only(tensor<float>({0, -INFINITY}))).equivalent());
  // The same with controls.
  CHECK(compare_tensors(a, mask(-kInf, kInf), {}, {.controls = {only(tensor<double>({1 + 1e-15, -kInf, -2, kInf}))}})
            .equivalent());
}

TEST_CASE("compare tensors: a negative tolerance is refused") {
  const TensorMap a = only(tensor<double>({1, 2}));
  for (const double tolerance : {-1e-3, static_cast<double>(NAN)})
    CHECK_THROWS_WITH(compare_tensors(a, a, {}, {.tolerance = tolerance}), Contains("expected at least 0"));
  CHECK(compare_tensors(a, a, {}, {.tolerance = 0}).equivalent());
}

TEST_CASE("compare tensors: integers are compared as integers, whatever the tolerance") {
  constexpr int64_t kLarge = int64_t{1} << 53;
  const auto integers = [](int64_t first) { return only(tensor<int64_t>({5, first})); };
  const TensorMap a = integers(kLarge);
  CHECK(compare_tensors(a, integers(kLarge)).identical);
  CHECK_THAT(said(a, integers(kLarge + 1)), Contains("different: w has 9007199254740993 at [1], in the reference "
                                                     "9007199254740992 (integers must be equal)"));
  CHECK_THAT(said(integers(100000000000), integers(100000000003), {}, {.tolerance = 0.5}), Contains("different"));
  CHECK_THAT(said(integers(100000000000), integers(100000000003), {}, {.gradients = true, .noise = {"**"}}),
             Contains("different"));
  // another dtype with the same numbers is equal, but not identical
  const TensorMap floats = only(tensor<double>({5, 100000000003}));  // integers in a floating-point dtype
  CHECK_FALSE(compare_tensors(integers(100000000000), floats).equivalent());
  CHECK_FALSE(compare_tensors(floats, integers(100000000000)).equivalent());
  CHECK(compare_tensors(floats, integers(100000000003)).equivalent());
  const TensorMap small = integers(7);
  for (const TensorMap& other : {only(tensor<uint8_t>({5, 7})), only(tensor<double>({5, 7}))}) {
    const TensorsComparison r = compare_tensors(small, other);
    CHECK(r.equivalent());
    CHECK_FALSE(r.identical);
  }
  CHECK_FALSE(compare_tensors(small, only(tensor<uint8_t>({5, 8}))).equivalent());
  CHECK_FALSE(compare_tensors(small, only(tensor<double>({5, 8}))).equivalent());
  // also through a map; numbers that f64 cannot represent are not compared
  const ParameterMap turned = ParameterMap().add("w", "w", {{"identity", 0}});
  CHECK(compare_tensors(integers(100000000000), integers(100000000000), turned).equivalent());
  CHECK_FALSE(compare_tensors(integers(100000000000), integers(100000000001), turned).equivalent());
  CHECK_THAT(said(integers(kLarge + 1), integers(kLarge + 2), turned), Contains("integers from 2^53 on"));
  CHECK_THAT(said(integers(kLarge + 2), only(tensor<double>({5, 0x1p53}))), Contains("integers from 2^53 on"));
}

TEST_CASE("compare tensors: \"equal to the last bit\" needs equal bits, one dtype and no map") {
  const TensorMap a = only(tensor<double>({0.0, 1.0}));
  const auto differs_in_bits = [&](const TensorMap& b, const ParameterMap& map = {}) {
    const TensorsComparison r = compare_tensors(a, b, map);
    INFO(r.sentence());
    CHECK(r.equivalent());
    CHECK_FALSE(r.identical);
    CHECK_THAT(r.sentence(), Contains("at most 0 % of the tolerance"));
  };
  differs_in_bits(only(tensor<double>({-0.0, 1.0})));
  differs_in_bits(only(tensor<float>({0.0F, 1.0F})));
  differs_in_bits(a, ParameterMap().add("w", "w", {{"identity", 0}}));
  CHECK(compare_tensors(a, a).identical);
  CHECK(compare_tensors(a, map_of({{"v", a.at("w")}}), ParameterMap().add("w", "v")).identical);
}

TEST_CASE("compare tensors: an entry of a joined tensor is named by its place in the tensor of A") {
  const Tensor q = randn({2, 4}), k = randn({2, 4});
  Tensor changed = k.clone();
  changed.mutable_data<float>()[1 * 4 + 3] += 1;
  const ParameterMap map = ParameterMap::from_json(R"([{"a": ["q", "k"], "b": "qk"}])");
  const TensorsComparison r =
      compare_tensors(map_of({{"q", q}, {"k", k}}), map_of({{"qk", cat({q, changed}, 0)}}), map);
  REQUIRE(r.first_difference);
  CHECK(r.first_difference->place.tensor == "k");
  CHECK(r.first_difference->place.index == Dims{1, 3});
}

TEST_CASE("compare tensors: an equal pair reports the share that would have been detected") {
  const TensorMap a = only(tensor<float>({1.0F, 9e-5F})), b = only(tensor<float>({1.0F, 0.0F}));
  CHECK_THAT(said(a, b), Contains("entries below 1.0e-04 of the largest of their tensor not seen"));
  CHECK_THAT(said(a, b, {}, {.tolerance = 0.25}), Contains("entries below 2.5e-01 of"));
  CHECK_THAT(said(a, a), !Contains("not seen"));
}

TEST_CASE("compare tensors: a factor that is called detectable is detected") {
  const Tensor weight = drawn().weight;
  const double tolerances[] = {1e-10, 1e-4, 3e-2};  // as documented
  const DType dtypes[] = {DType::f64, DType::f32, DType::bf16};
  for (int i = 0; i < 3; ++i)
    for (const double share : {0.01, 0.93}) {
      const Tensor a = weight.to(dtypes[i]);
      // One file is in f64, so that only the factor differs.
      const auto times = [&](double more) { return compare_tensors(only(a), only(a.to(DType::f64) * (1 + more))); };
      const TensorsComparison r = times(share * tolerances[i]);
      INFO(r.sentence());
      CHECK(r.equivalent());
      const double expected = tolerances[i] * (1 + share) / (1 - share * tolerances[i]);
      CHECK(std::abs(r.detectable / expected - 1) < 1e-3);
      CHECK(r.rows[0].detectable == r.detectable);
      CHECK_THAT(r.sentence(), Contains("detectable: a factor of 1 + "));
      CHECK_FALSE(times((1 + share * tolerances[i]) * (1 + r.detectable) - 1).equivalent());
    }
  CHECK_THAT(said(only(weight.to(DType::bf16)), only(weight * 1.028)), Contains("detectable"));
  CHECK_THAT(said(only(tensor<double>({0})), only(tensor<float>({0}))), !Contains("detectable"));
}

TEST_CASE("compare tensors: two tensors with the same partner differ; ignored tensors are ignored in both files") {
  const Tensor w = tensor({2., 1.});
  const TensorMap two = map_of({{"a.w", w}, {"b.w", w}}), one = only(w), b = map_of({{"w", w}, {"x", tensor({3.})}});
  const TensorsComparison r = compare_tensors(two, one, ParameterMap().add("*.w", "w"));
  CHECK_THAT(r.sentence(), Contains("different: w has two originals: a.w and b.w both become w (1 of 2 tensors"));
  CHECK(compare_tensors(two, one, ParameterMap().add("a.w", "w").leave_out("b.w")).equivalent());

  TensorMap a = map_of({{"w", w}, {"x", tensor({1.})}});
  const ParameterMap without_x = ParameterMap().leave_out("x");
  CHECK_THAT(said(a, b, without_x), Contains("equivalent: 1 tensor, ") && Contains("1 left out by the map"));
  CHECK_THAT(said(one, b, without_x), Contains("only the second has x"));
  // A tensor of B named in leave_out() is compared if another tensor of A maps to it.
  a.add("v", tensor({4.}));
  CHECK_THAT(said(a, b, ParameterMap().leave_out("x").add("v", "x")), Contains("different: x[0] is 3"));
}

TEST_CASE("compare tensors: weights go through M, gradients come back through its adjoint") {
  const auto [weight, bias] = drawn();
  const ParameterMap map = ParameterMap().add("fc.*", "h.*", {{"compress", 0}});
  const TensorMap mapped =
      map_of({{"h.weight", streams::compress_writer(weight, 0)}, {"h.bias", streams::compress_writer(bias, 0)}});
  CHECK_THAT(said(tensors(weight, bias), mapped, map), Contains("equivalent: 2 tensors"));
  const TensorMap pulled =
      tensors(streams::expand_reader(mapped.at("h.weight"), 0), streams::expand_reader(mapped.at("h.bias"), 0));
  CHECK_THAT(said(pulled, mapped, map, {.gradients = true}), Contains("equivalent: 2 tensors"));
  CHECK_THAT(said(tensors(weight, bias), mapped, map, {.gradients = true}), Contains("different: fc.weight[5, 3] is "));
  CHECK_THAT(said(tensors(weight, bias), mapped), Contains("only the first has fc.weight"));
  CHECK_THAT(said(tensors(weight, bias), tensors(weight, reshape(bias, {2, 3}))),
             Contains("fc.bias has shape [2, 3], expected [6]"));
}

TEST_CASE("compare tensors: a small gradient that differs is undecided below the share, different above it") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const double part : {1e-3, 0.98, 1.02, 3.0}) {
      const double largest = 2 * part * noise_share(dtype);
      const TensorMap a = beside_a_large_one(dtype, largest, kSmall);
      for (const auto& [name, forged] : kForgeries) {
        const TensorsComparison r = compare_tensors(a, beside_a_large_one(dtype, largest, forged), {}, kGradients);
        INFO(name_of(dtype) << ", " << part << " of the share, " << name << ": " << r.sentence());
        CHECK(r.verdict == (part < 1 ? Verdict::undecided : Verdict::different));
        CHECK(r.rows[0].verdict() == r.verdict);
        CHECK(r.rows[1].verdict() == Verdict::equivalent);
        if (part < 1)
          CHECK_THAT(r.sentence(), Contains("undecided: attn.key.bias is not comparable: below "));
        else
          CHECK(r.first_difference->place.tensor == "attn.key.bias");
      }
      CHECK(compare_tensors(a, beside_a_large_one(dtype, largest, kSmall), {}, kGradients).identical);
    }
}

TEST_CASE("compare tensors: an entry that is small in one file alone, NaN, or not a gradient is not noise") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const double share = noise_share(dtype);
    const TensorMap a = beside_a_large_one(dtype, share, kSmall), large = beside_a_large_one(dtype, 4 * share, kSmall);
    INFO(name_of(dtype));
    const TensorMap nan = beside_a_large_one(dtype, share, {1, NAN, 0.25, 0.75, -0.125, 0.5}),
                    sign = beside_a_large_one(dtype, share, kForgeries[1].second);
    TensorMap forged = beside_a_large_one(dtype, share, kForgeries[1].second);
    fill(forged.at("fc.weight"), 1);  // another tensor that differs makes it different
    const CompareTensorsOptions weights = {}, named = {.gradients = true, .noise = {"**"}};  // named: no help
    for (const auto& [first, second, o] : {std::tuple(&a, &large, &kGradients),
                                           {&large, &a, &kGradients},
                                           {&a, &nan, &kGradients},
                                           {&nan, &a, &kGradients},
                                           {&a, &sign, &weights},
                                           {&a, &large, &named},
                                           {&a, &nan, &named},
                                           {&a, &forged, &kGradients}})
      CHECK(compare_tensors(*first, *second, {}, *o).verdict == Verdict::different);
  }
}

TEST_CASE("compare tensors: named gradients and zeros in both are the same; the others must still agree") {
  const std::vector<double> zeros = kForgeries[0].second;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const double largest = 1.9 * noise_share(dtype);
    const TensorMap a = beside_a_large_one(dtype, largest, kSmall),
                    b = beside_a_large_one(dtype, largest, kForgeries[1].second);
    INFO(name_of(dtype));
    CHECK_THAT(said(a, b, {}, {.gradients = true, .noise = {"attn.*.bias"}}), Contains("1 taken for noise as named"));
    CHECK(compare_tensors(a, b, {}, {.gradients = true, .noise = {"attn.key.bias"}}).equivalent());
    CHECK_THROWS_WITH(compare_tensors(a, b, {}, {.gradients = true, .noise = {"attn.key.bias", "attn.keys.bias"}}),
                      "compare: the noise 'attn.keys.bias' fits no tensor of the first");
    CHECK(compare_tensors(a, b, {}, {.gradients = true, .noise = {"fc.*"}}).verdict == Verdict::undecided);
    CHECK(compare_tensors(a, b, {}, {.gradients = true, .tolerance = 0, .noise = {"**"}}).equivalent());
    CHECK(compare_tensors(beside_a_large_one(dtype, 1, zeros), beside_a_large_one(dtype, 1, zeros), {}, kGradients)
              .equivalent());
  }
  const TensorsComparison r = compare_tensors(beside_a_large_one(DType::f32, 1e-6, kSmall),
                                              beside_a_large_one(DType::f32, 1e-6, zeros), {}, kGradients);
  const auto rows = document_of(r).tables[0].rows;
  CHECK_THAT(rows[0][7].text, Contains("not comparable: below 1.2e-04 of the largest"));
  CHECK(rows[0][8].text == "undecided");
  CHECK(rows[1][8].text == "equivalent");
}

TEST_CASE("compare tensors: the likely cause follows from the difference itself") {
  const auto [weight, bias] = drawn();
  const TensorMap a = tensors(weight, bias);
  CHECK_THAT(said(a, tensors(streams::recentre(weight, 0), bias)),
             Contains("likely cause: the mean along dimension 0"));
  CHECK_THAT(said(a, tensors(weight * 0.25, bias)), Contains("likely cause: a factor of 0.25"));
  CHECK_THAT(said(a, tensors(contiguous(transpose(weight, 0, 1)), bias)),
             Contains("likely cause: a matrix that is stored transposed"));
  // The stream's axis in the layout is that of the layer's weight, not of its bias.
  const CompareTensorsOptions columns{.gradients = true, .layouts = {streams::Layout().writes("fc", 1)}};
  const Tensor w = streams::recentre(weight, 1), b = streams::recentre(bias, 0);
  for (const TensorMap& shifted : {tensors(w + reshape(bias, {6, 1}), b), tensors(w, b + 0.5)})
    CHECK_THAT(said(tensors(w, b), shifted, {}, columns),
               Contains("likely cause: a norm's backward without its mean term"));
  const Tensor other = randn({6, 6}, {DType::f64});
  CHECK(compare_tensors(a, tensors(other, bias)).likely_cause.empty());
  const Tensor wide = randn({2, 3});
  CHECK_THAT(said(only(wide), only(contiguous(transpose(wide, 0, 1)))),
             Contains("w has shape [3, 2], expected [2, 3] (stored transposed: map it with transpose)"));
  CHECK_THAT(said(only(wide), only(randn({3, 2}))), !Contains("transposed"));
}

TEST_CASE("tensors with controls: a deviation as large as rounding is equal, a larger one is not") {
  Generator g{5, 0};
  const Tensor w = randn({40, 30}, {DType::f32}, g);
  CompareTensorsOptions o;
  for (uint64_t seed : {1, 2, 3}) o.controls.push_back(only(moved_by_ulps(w, seed, 0)));
  const auto held = [&](const Tensor& x) { return compare_tensors(only(w), only(x), {}, o); };
  CHECK(held(moved_by_ulps(w, 9, 0)).equivalent());
  CHECK(held(moved_by_ulps(w, 9, 0, 20)).equivalent());  // within 30 times the controls
  const TensorsComparison far = held(w * (1 + 1e-4));
  CHECK(far.verdict == Verdict::different);  // a tolerance without controls would accept this:
  CHECK(compare_tensors(only(w), only(w * (1 + 0.9e-4))).equivalent());
  CHECK(far.rows[0].tolerance > 64 * 0x1p-23);  // a control is one ulp off, at most eps of the largest entry
  CHECK(far.rows[0].tolerance <= (30 + 64) * 0x1p-23);
  CHECK(held(w * NAN).verdict == Verdict::different);
  // Through a map: the controls belong to A and are mapped, too.
  CHECK(compare_tensors(only(w), only(streams::recentre(moved_by_ulps(w, 9, 0), 0)),
                        ParameterMap().add("w", "w", {{"recentre", 0}}), o)
            .equivalent());
  // Controls that are too far off, that did not move, and that belong to another model.
  CompareTensorsOptions wide = o, still = o, other = o;
  wide.controls = {only(w * 1.01)}, still.controls = {only(w), only(w)},
  other.controls = {only(randn({3}, {DType::f32}, g))};
  CHECK(compare_tensors(only(w), only(w * 1.001), {}, wide).verdict == Verdict::undecided);
  CHECK_THAT(compare_tensors(only(w), only(w * (1 + 1e-6)), {}, still).reason, Contains("nothing was measured"));
  for (double off : {1e-6, 1e-2})
    CHECK(compare_tensors(only(w), only(w * (1 + off)), {}, still).verdict == Verdict::undecided);
  CHECK_THROWS_WITH(compare_tensors(only(w), only(w), {}, other), Contains("control 1 has no 'w' of f32 and shape"));
  // A tensor with too wide controls does not affect the others.
  const auto two = [&](const Tensor& first, const Tensor& second) {
    return map_of({{"hidden", first}, {"seen", second}});
  };
  CompareTensorsOptions mixed;
  mixed.controls = {two(w * 1.01, moved_by_ulps(w, 1, 0))};
  const TensorsComparison found = compare_tensors(two(w, w), two(w, w * 1.001), {}, mixed);
  CHECK(found.rows[0].verdict() == Verdict::undecided);
  CHECK(found.rows[1].verdict() == Verdict::different);
}

TEST_CASE("moved by ulps: every element but 0 is its neighbour, in every dtype") {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor x = from_vector(std::vector<double>{0, 1, -1, 3, -1e-3, 1024, 0.75}, {7}).to(dtype);
    const std::vector<double> before = x.to(DType::f64).to_vector<double>();
    std::set<double> of_three;
    for (uint64_t seed = 1; seed < 20; ++seed) {
      const std::vector<double> after = moved_by_ulps(x, seed, 0).to(DType::f64).to_vector<double>();
      CHECK(after[0] == 0);
      for (size_t i = 1; i < after.size(); ++i) {
        const double ulp = std::ldexp(epsilon(dtype), std::ilogb(before[i])), off = std::abs(after[i] - before[i]);
        CHECK((off == ulp || off == ulp / 2));  // half an ulp below a power of two
      }
      of_three.insert(after[3]);
    }
    CHECK(of_three.size() == 2);
  }
}
