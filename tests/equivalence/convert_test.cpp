// Conversion between forms: logits, round trips, tied heads, formulas written out, and all refusals.
#include "equivalence/coordinates/parametrisation.h"
#include "tests/equivalence/model_files.h"

namespace {

constexpr TensorOptions kF64{DType::f64};
constexpr Form kForms[] = {Form::rms_norm, Form::crms_norm, Form::crms_isometric};

Tensor logits_of(const ModelFile& file) {
  return logits(file.description, file.state, ModelOptions(file.description).inputs(3, 5));
}

// A stream of width 4 made by hand: two writers, a norm with gain and bias, a reader with its bias, a neutral tensor.
struct ByHand {
  TensorMap state;
  streams::Plan plan;
  ByHand() {
    manual_seed(4);
    plan.width = 4;
    plan.writers = {{.name = "table", .dim = 1}, {.name = "up.bias", .dim = 0}};
    plan.readers = {{.name = "head.weight", .dim = 1, .norm = 0, .bias = "head.bias"}};
    plan.others = {{.name = "inner"}};
    plan.norms = {{.name = "norm", .eps = 1e-5, .weight = "norm.weight", .bias = "norm.bias"}};
    for (const auto& [name, shape] : std::vector<std::pair<std::string, Dims>>{{"table", {7, 4}},
                                                                               {"up.bias", {4}},
                                                                               {"head.weight", {5, 4}},
                                                                               {"head.bias", {5}},
                                                                               {"inner", {3, 2}},
                                                                               {"norm.weight", {4}},
                                                                               {"norm.bias", {4}}})
      state.add(name, randn(shape, kF64) + 0.5);
  }
  TensorMap with(const std::string& name, const Tensor& value) const { return with_tensor(state, name, value); }
};

}  // namespace

TEST_CASE("without gains the result equals the result of the stream's own maps") {
  manual_seed(3);
  for (Form to : kForms) {
    nn::Vit vit = streams::make<nn::Vit>(small_vit());
    const ModelFile file = filled_file(vit);
    vit.to(DType::f64);
    vit.load_state_dict(file.state);
    const TensorMap expected = mapped_state(vit, streams::Stream(to, 9, streams::Stored::mapped));
    for (const auto& [name, tensor] : convert_model(file, to).conversion.state) {
      INFO(name_of(to) << " " << name);
      CHECK(largest(tensor - expected.at(name)) < 1e-15);
    }
  }
}

TEST_CASE("gain and bias of the norm fold into reader and bias as the formula says, whatever the layout") {
  const ByHand h;
  const auto w = h.state.at("head.weight").to_vector<double>(), b = h.state.at("head.bias").to_vector<double>();
  const auto gain = h.state.at("norm.weight").to_vector<double>(), beta = h.state.at("norm.bias").to_vector<double>();
  const TensorMap converted = convert(h.state, h.plan, Form::crms_norm).state;
  const auto new_w = converted.at("head.weight").to_vector<double>(),
             new_b = converted.at("head.bias").to_vector<double>();
  for (size_t o = 0; o < 5; ++o) {
    double bias = b[o];
    for (size_t i = 0; i < 4; ++i) bias += w[o * 4 + i] * beta[i];
    CHECK(std::abs(new_b[o] - bias) < 1e-14);
    for (size_t i = 0; i < 3; ++i)
      CHECK(std::abs(new_w[o * 3 + i] - (w[o * 4 + i] * gain[i] - w[o * 4 + 3] * gain[3])) < 1e-14);
  }
  CHECK(converted.find("norm.weight") == nullptr);

  ByHand t;  // stored as [in, out], as in GPT-2
  t.plan.readers[0].dim = 0;
  const TensorMap state = t.with("head.weight", contiguous(transpose(t.state.at("head.weight"), 0, 1)));
  const Tensor turned = convert(state, t.plan, Form::crms_norm).state.at("head.weight");
  CHECK(turned.shape() == Dims{3, 5});
  CHECK(largest(transpose(turned, 0, 1) - converted.at("head.weight")) < 1e-15);
}

TEST_CASE("a layer scale folds into its writer before the writer is centred") {
  ByHand h;
  h.plan.writers[0].scale = "scale";
  const Tensor scale = from_vector<double>({0.5, 2, -1, 3}, {4});
  const Conversion c = convert(h.with("scale", scale), h.plan, Form::rms_norm);
  const Tensor expected = h.state.at("table") * scale;
  CHECK(largest(c.state.at("table") - (expected - mean(expected, {1}, true))) < 1e-14);
  CHECK(c.state.find("scale") == nullptr);
  CHECK(compare_streams(h.with("scale", scale), h.plan, c.state, c.plan).size < 1e-13);
}

TEST_CASE("tied embeddings: the head of the compressed form is B (I + 11^T), the table itself is not it") {
  manual_seed(8);
  const ModelFile file = file_of(small_gpt({}, true)), crms = converted(file, Form::crms_norm);
  const Tensor table = crms.state.at("token.weight"), head = crms.state.at("head.weight");
  CHECK(largest(matmul(table, eye(7, 7, kF64) + 1.0) - head) < 1e-14);
  CHECK(relative_deviation(logits_of(file), logits_of(crms)) < 1e-12);
  CHECK(relative_deviation(logits_of(file), logits_of(with_tensor(crms, "head.weight", table))) > 1e-2);
  // In the isometric basis the head equals the stored table.
  const ModelFile isometric = converted(file, Form::crms_isometric);
  CHECK(largest(isometric.state.at("token.weight") - isometric.state.at("head.weight")) < 1e-14);
}

TEST_CASE("raw weights of any form are the Pre-LN model's") {
  manual_seed(9);
  const ModelFile file = file_of(small_gpt({.affine = true}), {.form = Form::crms_norm});
  for (Form to : kForms) CHECK(relative_deviation(logits_of(file), logits_of(converted(file, to))) < 1e-12);
  CHECK_THROWS_WITH(convert_model(file, Form::layer_norm), Contains("has the form layer_norm already"));
}

// sum_rounding_test.cpp tests crms_norm, whose rounding keeps sums.
TEST_CASE("each tensor keeps its dtype, and is rounded to the nearest") {
  manual_seed(10);
  for (DType dtype : {DType::f32, DType::bf16}) {
    const ModelFile file = file_of(small_gpt({.affine = true}), {}, dtype);
    const Conversion c = convert_model(file, Form::crms_isometric).conversion;
    for (const auto& [name, tensor] : c.state) {
      INFO(name);
      CHECK(tensor.dtype() == dtype);
      CHECK(largest(tensor.to(DType::f64) - c.exact.at(name).to(dtype).to(DType::f64)) == 0);
    }
    CHECK(convert_model(file, Form::rms_norm, {.dtype = DType::f64}).conversion.state.at("token.weight").dtype() ==
          DType::f64);
  }
}

TEST_CASE("the table has a row for every tensor before and after") {
  manual_seed(12);
  const ModelFile file = file_of(small_gpt({.affine = true, .bias = false}, true));
  const Conversion c = convert_model(file, Form::crms_norm).conversion;
  const auto what = [&](const std::string& name) {
    for (const TensorChange& t : c.changes)
      if (t.name == name) return t.what;
    return std::string("no row");
  };
  for (const auto& [name, tensor] : file.state) CHECK(what(name) != "no row");
  for (const auto& [name, tensor] : c.state) CHECK(what(name) != "no row");
  CHECK(what("token.weight") == "recentred, compressed");
  CHECK(what("blocks.0.attn.qkv.weight") == "gain folded, compressed");
  CHECK(what("blocks.0.attn.qkv.bias") == "created: the norm's bias");
  CHECK(what("blocks.0.mlp.fc2.bias") == "created: zeros");
  CHECK(what("blocks.0.norm1.weight") == "dropped: folded into its readers");
  CHECK(what("head.weight") == "created: untied from token.weight, gain folded, compressed");
}

TEST_CASE("what cannot be converted exactly is refused, with tensor and reason") {
  const ByHand h;
  const auto refused = [](const TensorMap& state, const streams::Plan& plan, const std::string& name,
                          const char* reason, std::optional<DType> dtype = {}) {
    INFO(name << ": " << reason);
    const Form to = plan.form == Form::layer_norm ? Form::crms_isometric : Form::layer_norm;
    CHECK_THROWS_WITH(convert(state, plan, to, dtype), Contains(name) && Contains(reason));
  };
  CHECK_NOTHROW(convert(h.state, h.plan, Form::crms_isometric));  // the unchanged case
  const std::tuple<const char*, Tensor, const char*> states[] = {
      {"inner", {}, "missing"},
      {"norm.bias", {}, "missing"},
      {"adapter", ones({4, 2}, kF64), "unexpected"},
      {"up.bias", ones({5}, kF64), "[5] does not have 4 entries along dimension 0"},
      {"head.weight", ones({5, 3}, kF64), "[5, 3] does not have 4 entries"},
      {"head.bias", ones({4}, kF64), "[4], the bias of 'head.weight'"},
      {"norm.weight", ones({3}, kF64), "[3], a gain of this stream [4]"},
      {"table", zeros({7, 4}, {DType::i64}), "i64: integer and quantised"},
      {"head.bias", zeros({5}, {DType::i64}), "i64: integer and quantised"},
      {"table", zeros({7, 4}, {DType::u8}), "u8: integer and quantised"},
      {"up.bias", full({4}, NAN, kF64), "NaN or infinity"},
      {"norm.weight", full({4}, INFINITY, kF64), "NaN or infinity"}};
  for (const auto& [name, value, reason] : states) refused(h.with(name, value), h.plan, text("'", name, "'"), reason);
  refused(h.with("norm.weight", full({4}, 1e200, kF64)), h.plan, "'head.weight'", "does not fit f32", DType::f32);

  using L = streams::Plan;
  const std::tuple<void (*)(L&), const char*, const char*> plans[] = {
      {[](L& l) { l.readers[0].norm = -1; }, "'head.weight'", "reads the stream without a norm"},
      {[](L& l) { l.norms[0].normalizes = false; }, "'head.weight'", "its norm 'norm' does not normalize"},
      {[](L& l) { l.writers.push_back(l.writers[0]); }, "'table'", "two roles"},
      {[](L& l) { l.others.push_back({"head.bias"}); }, "'head.bias'", "two roles"},
      {[](L& l) { l.norms.push_back({.name = "norm", .eps = 1e-6}); }, "'norm'", "twice"},
      {[](L& l) { l.norms[0].eps = 0; }, "'norm'", "eps 0"},
      {[](L& l) { l.readers[0].norm = 1, l.norms.push_back({.name = "spare", .eps = 1e-5}); }, "'norm'",
       "no reader can fold in the gain"},
      {[](L& l) { l.norms.clear(); }, "norm", "there is no norm"},
      {[](L& l) { l.form = Form::rms_norm; }, "'table'", "RMSNorm sees that mean"},
      {[](L& l) { l.form = Form::crms_norm, l.width = 5; }, "'norm.weight'", "cannot act on the 4 coordinates"},
      {[](L& l) { l.width = 1; }, "width 1", "at least 2"},
      {[](L& l) {
         l.readers.push_back({.name = "out.weight", .dim = 1, .norm = 0, .bias = "out.bias", .table = "head.weight"});
       },
       "'head.weight'", "is not a writer"},
      {[](L& l) {
         l.readers.push_back({.name = "head.weight", .dim = 1, .norm = 0, .bias = "out.bias", .table = "table"});
       },
       "'head.weight'", "is taken"}};
  for (const auto& [change, name, reason] : plans) {
    streams::Plan plan = h.plan;
    change(plan);
    refused(h.state, plan, name, reason);
  }
  streams::Plan one = h.plan, narrow = h.plan, none = h.plan;
  one.writers.push_back({.name = "up.weight", .dim = 0, .scale = "scale"});
  refused(with_tensor(h.with("scale", ones({4}, kF64)), "up.weight", ones({4, 3}, kF64)), one, "'up.weight'",
          "its bias 'up.bias' none: \"scales\" must name both");
  narrow.form = Form::crms_norm, narrow.width = 5, narrow.norms[0].weight = narrow.norms[0].bias = "";
  narrow.writers[0].scale = "scale";
  for (const char* kept : {"norm.weight", "norm.bias"}) narrow.others.push_back({.name = kept});
  refused(h.with("scale", ones({5}, kF64)), narrow, "'scale'", "layer scale of 5 entries cannot act");
  none.form = Form::none;
  CHECK_THROWS_WITH(convert(h.state, none, Form::rms_norm), Contains("without norms"));
  CHECK_THROWS_WITH(convert(h.state, h.plan, Form::layer_norm), Contains("has the form layer_norm already"));
  CHECK_THROWS_WITH(convert(h.state, h.plan, Form::none), Contains("cannot be converted to a form without norms"));
}

TEST_CASE("models whose switches break the equivalence are refused by name") {
  manual_seed(13);
  const auto refused = [](nn::TransformerOptions t, const std::string& name, const std::string& reason,
                          Form form = Form::layer_norm) {
    INFO(name << ": " << reason);
    CHECK_THROWS_WITH(convert_model(file_of(small_gpt(t), {.form = form}), Form::crms_isometric),
                      Contains(name) && Contains(reason));
  };
  refused({.final_norm = false}, "'head.weight'",
          "would see the stream's mean, because its norm 'norm' does not normalize");
  refused({.branch = {.dropout = 0.1}}, "dropout 0.1", "before they are recentred");
  refused({}, "without norms", "no other form", Form::none);

  const ModelFile file = file_of(small_gpt({.branch = {.dropout = 0.1}}));
  const ModelConversion c = convert_model(file, Form::crms_norm, {.dtype = {}, .inference = true});
  const Tensor inputs = ModelOptions(file.description).inputs(3, 5);
  CHECK(relative_deviation(logits(file.description, file.state, inputs),
                           logits(c.description, c.conversion.state, inputs)) < 1e-12);
}

TEST_CASE("a stream of width 2 converts: values are exact there too") {
  manual_seed(6);
  nn::Gpt gpt({.vocab = 5, .context = 3, .transformer = {.width = 2, .depth = 1, .heads = 1}});
  const ModelFile file = filled_file(gpt);
  for (Form to : kForms) CHECK(relative_deviation(logits_of(file), logits_of(converted(file, to))) < 1e-11);
}

TEST_CASE("gains that begin scaled are folded into their readers, and their initial value is no part of the function") {
  manual_seed(3);
  const ModelFile file = file_of(small_gpt({.affine = true, .scaled_gains = true}));
  CHECK(file.description.at("model.scaled_gains") == "true");
  const ModelFile there = converted_exactly(file, streams::Form::crms_norm);
  CHECK(there.description.at("model.scaled_gains") == "false");
  CHECK(verify_models(file, there).equivalent());
  CHECK(verify_models(file, with_option(file, "scaled_gains", "false")).equivalent());
}
