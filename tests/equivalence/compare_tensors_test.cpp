// Tensors of two programs held against each other: one entry forged, NaN, nothing, partners missing, and the patterns
// that a difference can show.
#include "equivalence/compare_tensors.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "core/random.h"
#include "nn/coordinates.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using Catch::Matchers::Contains;

namespace {

Tensor copy_of(const Tensor& x) {
  const Tensor c = empty_like(x);
  copy_into(c, x);
  return c;
}

TensorMap tensors(const Tensor& weight, const Tensor& bias) {
  TensorMap m;
  m.add("fc.weight", weight);
  m.add("fc.bias", bias);
  return m;
}

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
  CHECK(r.same == r.message().starts_with("same"));
  return r.message();
}

}  // namespace

TEST_CASE("compare tensors: one entry off by 1e-9 of its tensor's largest is found and named") {
  const auto [weight, bias] = drawn();
  const Tensor forged = copy_of(weight);
  double most = 0;
  for (double v : weight.to_vector<double>()) most = std::max(most, std::abs(v));
  forged.mutable_data<double>()[16] += 1e-9 * most;
  const TensorsComparison r = compare_tensors(tensors(weight, bias), tensors(forged, bias));
  CHECK_FALSE(r.same);
  REQUIRE(r.first);
  CHECK(r.first->tensor == "fc.weight");
  CHECK(r.first->index == Dims{2, 4});
  CHECK(std::abs(r.first->deviation - 1e-9) < 1e-14);
  CHECK(r.likely.empty());
  CHECK_THAT(r.message(),
             Contains("fc.weight[2, 4] is ") && Contains("1.0e-09") && Contains("(1 of 2 tensors differs)"));
  CHECK(compare_tensors(tensors(weight, bias), tensors(forged, bias), {}, {.tolerance = 2e-9}).same);
  // A file in f32 beside one in f64 is held to what f32 can hold.
  CHECK_THAT(said(tensors(weight, bias), tensors(cast(weight, DType::f32), bias)), Contains("same: 2 tensors"));
  const auto json = nlohmann::json::parse(r.json());
  CHECK(json["first"]["index"] == std::vector<int>{2, 4});
  CHECK(json["tensors"][1]["same"] == true);
}

TEST_CASE("compare tensors: NaN, nothing and missing partners are never the same; equal bits are said to be") {
  const auto [weight, bias] = drawn();
  const TensorMap a = tensors(weight, bias);
  const TensorsComparison equal = compare_tensors(a, tensors(copy_of(weight), bias));
  CHECK(equal.same);
  CHECK(equal.identical);
  CHECK_THAT(equal.message(), Contains("equal to the last bit"));
  const Tensor nan = copy_of(weight);
  nan.mutable_data<double>()[3] = NAN;
  CHECK_THAT(said(a, tensors(nan, bias)), Contains("different: fc.weight[0, 3] is nan"));
  CHECK_THAT(said(tensors(nan, bias), tensors(nan, bias)), Contains("different: fc.weight[0, 3] is nan"));
  CHECK_THAT(said({}, {}), Contains("different: no tensors were compared"));
  CHECK_THAT(said(a, {}), Contains("only the first has fc.weight (2 tensors without partner)"));
  TensorMap more = tensors(weight, bias);
  more.add("extra", bias);
  CHECK_THAT(said(a, more), Contains("only the second has extra"));
  CHECK_THAT(said(more, a), Contains("only the first has extra"));
  CHECK(compare_tensors(more, a, ParameterMap().leave_out("extra")).same);
  TensorMap empty_one;
  empty_one.add("x", empty({0, 3}, {DType::f64}));
  CHECK(compare_tensors(empty_one, empty_one).rows.size() == 1);
}

TEST_CASE("compare tensors: weights go through M, gradients come back through its adjoint") {
  const auto [weight, bias] = drawn();
  const ParameterMap map = ParameterMap().add("fc.*", "h.*", {{"compress", 0}});
  TensorMap mapped, gradients;
  mapped.add("h.weight", nn::compress_writer(weight, 0));
  mapped.add("h.bias", nn::compress_writer(bias, 0));
  CHECK_THAT(said(tensors(weight, bias), mapped, map), Contains("same: 2 tensors"));
  const TensorMap pulled =
      tensors(nn::expand_reader(mapped.at("h.weight"), 0), nn::expand_reader(mapped.at("h.bias"), 0));
  CHECK_THAT(said(pulled, mapped, map, {.gradients = true}), Contains("same: 2 tensors"));
  CHECK_THAT(said(tensors(weight, bias), mapped, map, {.gradients = true}), Contains("different: fc.weight[0, 0] is "));
  CHECK_THAT(said(tensors(weight, bias), mapped), Contains("only the first has fc.weight"));
  CHECK_THAT(said(tensors(weight, bias), tensors(weight, reshape(bias, {2, 3}))),
             Contains("fc.bias has shape [2, 3], expected [6]"));
}

TEST_CASE("compare tensors: a gradient that is rounding noise beside the others is measured against them") {
  const auto [weight, bias] = drawn();
  const TensorMap a = tensors(weight, bias * 1e-17), b = tensors(weight, bias * -1e-17);
  CHECK(compare_tensors(a, b, {}, {.gradients = true}).same);
  CHECK_FALSE(compare_tensors(a, b).same);
}

TEST_CASE("compare tensors: the likely cause is what the difference itself shows") {
  const auto [weight, bias] = drawn();
  const TensorMap a = tensors(weight, bias);
  CHECK_THAT(said(a, tensors(nn::recentre(weight, 0), bias)), Contains("likely the mean along dimension 0"));
  CHECK_THAT(said(a, tensors(weight * 0.25, bias)), Contains("likely a factor of 0.25"));
  CHECK_THAT(said(a, tensors(contiguous(transpose(weight, 0, 1)), bias)),
             Contains("likely a matrix that is stored transposed"));
  const Tensor other = randn({6, 6}, {DType::f64});
  CHECK(compare_tensors(a, tensors(other, bias)).likely.empty());
  TensorMap wide, tall;
  wide.add("w", randn({2, 3}));
  tall.add("w", randn({3, 2}));
  CHECK_THAT(said(wide, tall), Contains("w has shape [3, 2], expected [2, 3] (likely stored transposed"));
}
