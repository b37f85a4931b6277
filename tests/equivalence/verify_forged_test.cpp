// Files made to pass as each other: differences hidden in a tolerance, in a description, or in the rounding of a bias
// on which the function does not depend.
#include "equivalence/verify/compare_rows.h"
#include "streams/map.h"
#include "streams/plan.h"
#include "tests/equivalence/model_files.h"

using streams::Map;

namespace {

const char* const kVit = R"({"width": 9, "norms": {"blocks.*.norm1": "1e-5", "blocks.*.norm2": "1e-5", "norm": "1e-5"},
  "writers": {"position": 1, "cls": 0, "patch.weight": 0, "patch.bias": 0, "blocks.*.attn.proj.weight": 0,
              "blocks.*.attn.proj.bias": 0, "blocks.*.mlp.fc2.weight": 0, "blocks.*.mlp.fc2.bias": 0},
  "readers": {"blocks.*.attn.qkv.weight": {"dim": 1, "norm": "blocks.*.norm1"},
              "blocks.*.mlp.fc1.weight": {"dim": 1, "norm": "blocks.*.norm2"},
              "head.weight": {"dim": 1, "norm": "norm"}}%})";

std::string vit_spec(const std::string& more = "") {
  std::string json = kVit;
  return json.replace(json.find('%'), 1, more);
}

streams::Plan own_places() { return streams::plan_of(streams::make<nn::Vit>(small_vit())); }

// Compares the entries, with the same result in both orders.
bool same_entries(const ModelFile& a, const ModelFile& b) {
  const streams::Plan plan = own_places();
  const bool same = compare_entries(a.state, plan, b.state, plan).equivalent();
  CHECK(compare_entries(b.state, plan, a.state, plan).equivalent() == same);
  return same;
}

Verification by_spec(const ModelFile& a, const ModelFile& b) {
  const auto plan = [](const ModelFile& file) {
    return streams::plan_in(streams::Layout::from_json(vit_spec()), file.state,
                            stored_form(ModelOptions(file.description)));
  };
  return verify_streams(a, plan(a), b, plan(b));
}

}  // namespace

TEST_CASE("verify: a bias that the function does not see is no measure of the others of its vector") {
  for (const auto& [dtype, keys, factor] :
       {std::tuple(DType::f64, 1e12, 1 + 1e-5), {DType::f32, 1e6, 1.1}, {DType::bf16, 30.0, 1.3}})
    for (const bool with_keys : {true, false}) {  // a key bias, or any bias: entries are rounded individually
      INFO(name_of(dtype) << " " << with_keys);
      manual_seed(11);
      const std::string name = with_keys ? "blocks.0.attn.qkv.bias" : "head.bias";
      const size_t begin = with_keys ? 9 : 3, end = with_keys ? 18 : 4;
      const ModelFile a = edited(file_of(small_vit(), {}, dtype), name, [&, by = keys](std::vector<double>& v) {
        for (size_t i = begin; i < end; ++i) v[i] = by;
      });
      const ModelFile b = edited(a, name, [&, by = factor](std::vector<double>& v) {
        for (size_t i = 0; i < v.size(); ++i)
          if (i < begin || i >= end) v[i] *= by;
      });
      CHECK_FALSE(same_entries(a, b));
      CHECK_FALSE(verify_models(a, b).equivalent());
      CHECK(verify_models(a, a).equivalent());
      CHECK(verify_models(a, converted(a, Form::crms_norm)).equivalent());
    }
}

TEST_CASE("verify: the effect of one flipped value of a slice, not of each entry") {
  manual_seed(12);
  const std::string name = "blocks.0.mlp.fc2.bias";
  for (const auto& [outlier, change] : {std::pair(30.0, 0.09), {100.0, 0.2}}) {
    const ModelFile a =
        edited(file_of(small_vit(), {}, DType::bf16), name, [by = outlier](std::vector<double>& v) { v[3] = by; });
    const ModelFile b = edited(a, name, [by = change](std::vector<double>& v) {
      for (size_t i = 0; i < v.size(); ++i)
        if (i != 3) v[i] += i % 2 ? by : -by;
    });
    INFO(outlier);
    CHECK_FALSE(same_entries(a, b));
  }
}

TEST_CASE("verify: a flipped value moves the entries along one column of the form's map") {
  constexpr int64_t width = 7;
  const auto column = [](const Map& map, int64_t k) {
    std::vector<double> unit(static_cast<size_t>(map.inputs()));
    unit[static_cast<size_t>(k)] = 0.5;
    std::vector<double> moved = map(from_vector(unit, {map.inputs()}), 0).to_vector<double>();
    for (double& x : moved) x = std::abs(x) < 1e-15 ? 0 : std::abs(x) * (1 - 1e-12);
    return moved;
  };
  for (const Map& map :
       {Map::recentre(width), Map::expand(width), Map::expand_reader(width), Map::isometric(width).adjoint()})
    for (int64_t k = 0; k < map.inputs(); ++k) {
      INFO(map.name() << " " << k);
      std::vector<double> moved = column(map, k);
      CHECK(flipped_share(moved, 0.5, map) <= 1);
      CHECK(flipped_share(std::vector<double>(moved.size()), 0, map) == 0);
      for (double& x : moved) x *= 2;
      CHECK(flipped_share(moved, 0.5, map) > 1);
      CHECK(flipped_share(std::vector<double>(moved.size(), 0.25), 0.5, map) > 1);
    }
}

TEST_CASE("verify: a sum of rows or a mean without effect may be in either file") {
  manual_seed(13);
  const ModelFile file = file_of(small_vit());
  for (const char* name : {"blocks.0.mlp.fc1.weight", "position"}) {
    INFO(name);
    const ModelFile moved = edited(file, name, [](std::vector<double>& v) {
      for (double& x : v) x += 1000;
    });
    CHECK(verify_models(file, moved).equivalent());
    CHECK(verify_models(moved, file).equivalent());
    CHECK(by_spec(file, moved).equivalent());
    CHECK(by_spec(moved, file).equivalent());
  }
}

TEST_CASE("verify by description: the files' own metadata counts") {
  manual_seed(14);
  const ModelFile file = file_of(small_vit());
  CHECK(by_spec(file, file).equivalent());
  CHECK_THAT(by_spec(file, with_option(file, "activation", "relu")).sentence(),
             Contains("different: ") && Contains("Their options differ: activation"));
  CHECK_THROWS_WITH(by_spec(file, with_option(file, "eps", "1e-6")), Contains("its eps is 1e-06"));
  const streams::Plan plan = own_places();
  const ModelFile mapped = with_option(with_option(file, "form", "rms_norm"), "storage", "mapped");
  CHECK_THROWS_WITH(check_described(mapped.description, plan), Contains("in the form rms_norm, not layer_norm"));
  CHECK_NOTHROW(check_described(with_option(file, "form", "rms_norm").description, plan));  // raw: as in Pre-LN
  CHECK_NOTHROW(check_described({}, plan));
  streams::Plan wide = plan;
  wide.width = 10;
  CHECK_THROWS_WITH(check_described(file.description, wide), Contains("width 9, not 10"));
}

TEST_CASE("verify by description: a layer scale belongs to a writer, and its pattern meets one") {
  manual_seed(15);
  ModelFile file = file_of(small_vit());
  const auto plan = [&](const std::string& more, const TensorMap& state, bool converted = false) {
    return streams::plan_in(streams::Layout::from_json(vit_spec(more)), state, Form::layer_norm, converted);
  };
  file.state.add("ls", randn({9}, {DType::f64}) + 2.0);
  const std::string ok = R"(, "scales": {"blocks.*.mlp.fc2.*": "ls"})";
  for (const char* no : {"blocks.*.mlp.fc1.weight", "blocks.*.mlp.fc1.bias", "head.weight"})
    CHECK_THROWS_WITH(plan(text(", \"scales\": {\"", no, "\": \"ls\"}"), file.state),
                      Contains("'ls'") && Contains("is not a writer") && Contains(no));
  CHECK_THROWS_WITH(plan(R"(, "scales": {"blocks.*.mlp.fc9.*": "ls"}, "not_on_stream": ["ls"])", file.state),
                    Contains("no tensor is called \"blocks.*.mlp.fc9.*\""));
  CHECK_THROWS_WITH(plan(R"(, "scales": {"blocks.*.mlp.fc2.*": "ls", "blocks.0.mlp.fc2.bias": "ls"})", file.state),
                    Contains("two layer scales"));
  CHECK_THROWS_WITH(plan(R"(, "scales": {"blocks.*.mlp.fc2.*": ""})", file.state), Contains("empty name"));
  // After folding into its writer the scale is gone, and the same description reads the result.
  const ModelFile plain{file.state, {}};
  const Conversion c = convert(plain.state, plan(ok, plain.state), Form::rms_norm);
  streams::Plan result = plan(ok, c.state, true);
  result.form = Form::rms_norm;
  CHECK(verify_streams(plain, plan(ok, plain.state), ModelFile{c.state, {}}, result).equivalent());
  CHECK_THROWS_WITH(plan(ok, c.state), Contains("'ls' is missing"));
}

TEST_CASE("verify by description: which norm a pattern means") {
  manual_seed(16);
  const TensorMap state = file_of(small_vit({.affine = true})).state;
  const auto parse = [&](const std::string& from, const std::string& to) {
    std::string json = vit_spec();
    json.replace(json.find(from), from.size(), to);
    return streams::plan_in(streams::Layout::from_json(json), state, Form::layer_norm);
  };
  const std::string norm = R"("norm": "1e-5")";
  for (const streams::Plan::Norm& n : parse(norm, norm + R"(, "blocks.0.norm1": "1e-6")").norms)
    CHECK(n.eps == (n.name == "blocks.0.norm1" ? 1e-6 : 1e-5));
  CHECK_THROWS_WITH(parse(norm, norm + R"(, "*.0.norm1": "1e-6")"),
                    Contains("'blocks.0.norm1'") && Contains("at once"));
  CHECK_THROWS_WITH(parse(norm, norm + R"(, "norms.*": "1e-6")"), Contains("norm \"norms.*\""));
  CHECK_THROWS_WITH(parse(norm, norm + R"(, "last": "1e-6")"), Contains("norm \"last\""));
}

TEST_CASE("convert by description: a bias without a gain, an empty tensor, a table that is tied twice") {
  manual_seed(18);
  TensorMap state;
  const TensorOptions f64{DType::f64};
  state.add("table", randn({5, 6}, f64)), state.add("out.weight", randn({3, 6}, f64)),
      state.add("norm.bias", randn({6}, f64));
  state.add("none", zeros({0}, f64));
  const std::string head = R"({"width": 6, "norms": {"norm": "1e-5"}, "writers": {"table": 1}, )";
  const streams::Plan plan =
      streams::plan_in(streams::Layout::from_json(
                           head + R"("readers": {"out.weight": {"dim": 1, "norm": "norm"}}, "others": ["none"]})"),
                       state, Form::layer_norm);
  const Conversion c = convert(state, plan, Form::crms_norm);
  CHECK(compare_streams(state, plan, c.exact, c.plan).explained());
  CHECK(c.state.at("none").shape() == Dims{0});
  const std::string tied = R"("table": {"head": "out.weight", "norm": "norm"})";
  CHECK_THROWS_WITH(streams::plan_in(streams::Layout::from_json(head + "\"tied\": {" + tied + ", " + tied + "}}"),
                                     state, Form::layer_norm),
                    Contains("\"table\" is there twice"));
  streams::Plan bare = plan;
  bare.norms[0].normalizes = false;
  const std::string reason = compare_entries(state, bare, state, plan).reason;
  CHECK_THAT(reason, Contains("normalizes in the second alone") || Contains("does not normalize"));
}
