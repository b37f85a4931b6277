// Files of other programs, with a description of the writers and readers of the stream.
#include "equivalence/convert/state.h"
#include "streams/plan.h"
#include "tests/equivalence/model_files.h"

using Catch::Matchers::EndsWith;

namespace {

template <class T> Tensor values(std::vector<T> v) { return from_vector(v, {static_cast<int64_t>(v.size())}); }

}  // namespace

TEST_CASE("verify by description: others to the last bit, and no writer among them") {
  const char* const spec = R"({"width": 6, "norms": {"norm": "1e-5"}, "writers": {"table": 1},
                              "readers": {"out.weight": {"dim": 1, "norm": "norm"}}, "others": ["note", "up.bias"]%})";
  const auto plan = [&](const TensorMap& state, const std::string& more = "") {
    std::string json = spec;
    return streams::plan_in(streams::Layout::from_json(json.replace(json.find('%'), 1, more)), state, Form::layer_norm);
  };
  manual_seed(2);
  const Tensor table = randn({5, 6}), out = randn({3, 6}), bias = randn({6});
  const auto state = [&](const Tensor& note, bool up = false) {
    TensorMap s;
    s.add("table", table), s.add("out.weight", out), s.add("note", note);
    if (up) s.add("up.bias", bias);
    return s;
  };
  const auto verify = [&](const Tensor& x, const Tensor& y) {
    return verify_streams(ModelFile{state(x), {}}, plan(state(x)), ModelFile{state(y), {}}, plan(state(y)));
  };
  const Tensor one = values<float>({1, 2, 3});
  CHECK_THAT(verify(one, values<float>({-7, 0, 99})).sentence(), Contains("different: ") && Contains("'note'"));
  CHECK_FALSE(verify(one, values<float>({1, 2, std::nextafter(3.0F, 4.0F)})).equivalent());
  CHECK_FALSE(verify(values<float>({0.0F}), values<float>({-0.0F})).equivalent());
  CHECK_FALSE(verify(values<int64_t>({1, 2}), values<int64_t>({1, 3})).equivalent());
  CHECK_FALSE(verify(values<int64_t>({1, 2}), values<double>({1, 2})).equivalent());
  const Tensor third = values<double>({1.0 / 3}), coarse = third.to(DType::f32);
  CHECK(verify(third, coarse).equivalent());
  CHECK(verify(coarse, coarse).sentence() ==
        "equivalent: the two are one function. Every tensor is equal to the last bit.");

  streams::Plan other_eps = plan(state(one));
  other_eps.norms[0].eps = 1.1e-5;
  CHECK_THAT(
      verify_streams(ModelFile{state(one), {}}, plan(state(one)), ModelFile{state(one), {}}, other_eps).sentence(),
      Contains("different: ") && Contains("eps of norm 'norm' is 1e-05 and 1.1e-05"));

  const TensorMap writer = state(one, true);
  CHECK_THROWS_WITH(convert(writer, plan(writer), Form::rms_norm),
                    Contains("'up.bias' of shape [6]") && Contains("not_on_stream"));
  CHECK_THROWS_WITH(verify_streams(ModelFile{writer, {}}, plan(writer), ModelFile{writer, {}}, plan(writer)),
                    Contains("'up.bias'"));
  const TensorMap mask = state(zeros({1, 6, 6}, {DType::u8}));
  CHECK_THROWS_WITH(convert(mask, plan(mask), Form::rms_norm), Contains("'note' of shape [1, 6, 6]"));
  const auto off_stream = [&](const std::string& pattern) {
    return plan(mask, ", \"not_on_stream\": [\"" + pattern + "\"]");
  };
  std::string said = spec;
  const std::string others = "\"others\": [\"note\", \"up.bias\"]%";
  said.replace(said.find(others), others.size(), "\"not_on_stream\": [\"no*\"]");
  CHECK_NOTHROW(
      convert(mask, streams::plan_in(streams::Layout::from_json(said), mask, Form::layer_norm), Form::rms_norm));
  CHECK_THROWS_WITH(off_stream("note"), Contains("\"note\" has two roles"));
  CHECK_THROWS_WITH(off_stream(""), Contains("a pattern is empty"));
  CHECK_THROWS_WITH(off_stream("*.*.*.*"), Contains("\"*.*.*.*\" has more than three stars"));
}

TEST_CASE("convert by description: compressed streams, and lengths that are the width by chance") {
  manual_seed(5);
  TensorMap state;
  state.add("table", randn({5, 6})), state.add("out.weight", randn({6, 6})), state.add("out.bias", randn({6}));
  state.add("inner", randn({4, 5}));
  const auto spec = [](const std::string& rest) {
    return R"({"width": 6, "norms": {"norm": "1e-5"}, "writers": {"table": 1},
               "readers": {"out.weight": {"dim": 1, "norm": "norm"}}, )" +
           rest + "}";
  };
  const auto parsed = [&](const std::string& rest, Form form, const TensorMap& s) {
    return streams::plan_in(streams::Layout::from_json(spec(rest)), s, form);
  };
  // A reader's bias follows from its reader, whether or not the description lists it. When d numbers are stored, an
  // axis of d - 1 is not the stream's.
  const Conversion c =
      convert(state, parsed(R"("others": ["inner", "out.bias"])", Form::layer_norm, state), Form::crms_norm);
  CHECK(c.state.at("out.bias").shape() == Dims{6});
  CHECK_THROWS_WITH(convert(c.state, parsed(R"("others": ["inner"])", Form::crms_norm, c.state), Form::rms_norm),
                    Contains("'inner' of shape [4, 5] has an axis of the stream's width 5"));
  const streams::Plan said = parsed(R"("not_on_stream": ["inner"])", Form::crms_norm, c.state);
  CHECK_NOTHROW(convert(c.state, said, Form::rms_norm));
  // With another description the reader has no bias, so out.bias is unrelated to the stream.
  std::string other = spec(R"("not_on_stream": ["inner", "out.bias"])");
  other.insert(other.find("}}"), R"(, "bias": "none")");
  const streams::Plan without = streams::plan_in(streams::Layout::from_json(other), state, Form::layer_norm);
  CHECK_THAT(
      compare_entries(state, parsed(R"("not_on_stream": ["inner"])", Form::layer_norm, state), state, without).reason,
      StartsWith("'out.bias' has one role on the stream"));
}
