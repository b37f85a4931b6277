// Descriptions of other frameworks' checkpoints.
#include "streams/plan.h"

#include "tests/equivalence/model_files.h"

namespace {

constexpr TensorOptions kF64{DType::f64};

const char* const kGpt2 = R"({
  "width": 8,
  "norms":   {"h.*.ln_1": "1e-5", "h.*.ln_2": "1e-5", "ln_f": "1e-5"},
  "writers": {"wte.weight": 1, "wpe.weight": 1,
              "h.*.attn.c_proj.weight": 1, "h.*.attn.c_proj.bias": 0,
              "h.*.mlp.c_proj.weight": 1, "h.*.mlp.c_proj.bias": 0},
  "readers": {"h.*.attn.c_attn.weight": {"dim": 0, "norm": "h.*.ln_1"},
              "h.*.mlp.c_fc.weight":    {"dim": 0, "norm": "h.*.ln_2"}},
  "tied":    {"wte.weight": {"head": "lm_head.weight", "norm": "ln_f"}},
  "others":  ["h.*.attn.bias"]})";

// A checkpoint with the names and layouts of GPT-2 (Conv1D weights are [in, out]; attn.bias is a mask).
TensorMap gpt2() {
  manual_seed(1);
  TensorMap state;
  const auto add = [&](const std::string& name, const Dims& shape) { state.add(name, randn(shape, kF64) * 0.3 + 0.2); };
  add("wte.weight", {11, 8}), add("wpe.weight", {6, 8});
  for (int i = 0; i < 2; ++i) {
    const std::string h = text("h.", i, ".");
    add(h + "ln_1.weight", {8}), add(h + "ln_1.bias", {8});
    state.add(h + "attn.bias", ones({1, 1, 6, 6}, {DType::u8}));
    add(h + "attn.c_attn.weight", {8, 24}), add(h + "attn.c_attn.bias", {24});
    add(h + "attn.c_proj.weight", {8, 8}), add(h + "attn.c_proj.bias", {8});
    add(h + "ln_2.weight", {8}), add(h + "ln_2.bias", {8});
    add(h + "mlp.c_fc.weight", {8, 32}), add(h + "mlp.c_fc.bias", {32});
    add(h + "mlp.c_proj.weight", {32, 8}), add(h + "mlp.c_proj.bias", {8});
  }
  add("ln_f.weight", {8}), add("ln_f.bias", {8});
  return state;
}

streams::Plan placed(const TensorMap& state, const std::string& json = kGpt2, Form form = Form::layer_norm) {
  return streams::plan_in(streams::Layout::from_json(json), state, form);
}

std::string replaced(std::string json, const std::string& from, const std::string& to) {
  const size_t at = json.find(from);
  REQUIRE(at != std::string::npos);
  return json.replace(at, from.size(), to);
}

// True if a state converts to the same tensors by both plans.
void check_same(const TensorMap& state, const streams::Plan& one, const streams::Plan& other) {
  for (Form to : {Form::rms_norm, Form::crms_norm}) {
    const Conversion a = convert(state, one, to), b = convert(state, other, to);
    REQUIRE(a.exact.size() == b.exact.size());
    for (const auto& [name, tensor] : a.exact)
      if (is_floating(tensor.dtype())) CHECK(largest(b.exact.at(name) - tensor) == 0);
  }
}

}  // namespace

TEST_CASE("a GPT-2 checkpoint converts by its description, there and back") {
  const TensorMap state = gpt2();
  const streams::Plan layout = placed(state);
  CHECK(layout.norms.size() == 5);
  CHECK(layout.readers.back().table == "wte.weight");
  for (Form to : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    INFO(name_of(to));
    const Conversion c = convert(state, layout, to);
    CHECK(compare_streams(state, layout, c.state, c.plan).size < 1e-13);
    CHECK(c.state.at("h.1.attn.bias").dtype() == DType::u8);
    CHECK(c.state.at("h.1.attn.c_attn.weight").shape() == Dims{to == Form::rms_norm ? 8 : 7, 24});
    // The head's bias exists because ln_f has one; the same description reads the converted file.
    CHECK(c.state.at("lm_head.bias").shape() == Dims{11});
    const streams::Plan converted = placed(c.state, kGpt2, to);
    CHECK(std::ranges::none_of(converted.readers, &streams::Plan::Reader::tied));
    CHECK(compare_streams(state, layout, c.state, converted).size < 1e-13);
    const Conversion back = convert(c.state, converted, Form::layer_norm);
    CHECK(compare_streams(state, layout, back.state, back.plan).size < 1e-13);
  }
}

TEST_CASE("a layer's name means its weight and its bias, and a program's calls equal a description") {
  const TensorMap state = gpt2();
  std::string json = replaced(kGpt2, "\"wte.weight\": 1", "\"wte\": 1");
  json = replaced(json, "\"h.*.attn.c_proj.weight\": 1, \"h.*.attn.c_proj.bias\": 0", "\"h.*.attn.c_proj\": 1");
  check_same(state, placed(state), placed(state, replaced(json, "h.*.mlp.c_fc.weight", "h.*.mlp.c_fc")));
  streams::Layout lines;
  lines.width(8).norm("h.*.ln_1", 1e-5).norm("h.*.ln_2", 1e-5).norm("ln_f", 1e-5);
  lines.writes("wte", 1).writes("wpe", 1).writes("h.*.*.c_proj", 1).other("h.*.attn.bias");
  lines.reads("h.*.attn.c_attn", "h.*.ln_1", 0).reads("h.*.mlp.c_fc", "h.*.ln_2", 0);
  lines.tied({.table = "wte.weight", .weight = "lm_head.weight", .bias = "", .norm = "ln_f"});
  check_same(state, placed(state), streams::plan_in(lines, state, Form::layer_norm));
  CHECK_THROWS_WITH(streams::plan_in(streams::Layout().writes("wte"), state, Form::layer_norm),
                    Contains("which dimension of 'wte.weight' is the stream is not said"));
}

TEST_CASE("a layer's bias belongs to its weight, and no other tensor of that name does") {
  TensorMap state;
  manual_seed(5);
  state.add("table", randn({5, 8}, kF64)), state.add("q.weight", randn({3, 8}, kF64));
  state.add("q.bias", randn({8}, kF64)), state.add("q.b2", randn({3}, kF64));
  const auto with = [&](const char* reader, const char* bias) {
    streams::Layout l;
    l.width(8).norm("n", 1e-5).writes("table", 1).reads(reader, "n", 1, bias);
    return streams::plan_in(l, state, Form::layer_norm);
  };
  for (const char* reader : {"q", "q.weight"})  // no pattern names q.bias
    CHECK_THROWS_WITH(convert(state, with(reader, "q.b2"), Form::rms_norm), Contains("'q.bias'"));
  // The layout decides, not the name: a matrix called "bias" is a writer here.
  TensorMap table;
  table.add("pos.bias", randn({8, 8}, kF64)), table.add("q.weight", randn({3, 8}, kF64));
  for (const char* writer : {"pos.bias", "pos.*"}) {
    INFO(writer);
    streams::Layout l;
    l.width(8).norm("n", 1e-5).writes(writer, 1).reads("q", "n", 1);
    const Conversion c = convert(table, streams::plan_in(l, table, Form::layer_norm), Form::crms_norm);
    CHECK(c.exact.at("pos.bias").shape() == Dims{8, 7});
  }
}

TEST_CASE("a model's own places are written as a description that finds them again") {
  for (const bool tied : {false, true}) {
    nn::Gpt gpt = streams::make<nn::Gpt>(small_gpt({.affine = true, .branch = {.layer_scale = 0.5}}, tied));
    const training::ModelFile file = filled_file(gpt);
    const streams::Plan own = streams::plan_of(gpt);
    check_same(file.state, own, placed(file.state, streams::spec_of(own)));
  }
  nn::Gpt scaled = streams::make<nn::Gpt>(small_gpt({.connection = nn::kLayerNormScaling}));
  CHECK_THROWS_WITH(streams::spec_of(streams::plan_of(scaled)), Contains("'blocks.1.norm1'") && Contains("factor"));
}

TEST_CASE("a description in short: alternatives in braces, an eps as a number") {
  const TensorMap state = gpt2();
  std::string json = replaced(kGpt2, R"("h.*.ln_1": "1e-5", "h.*.ln_2": "1e-5", "ln_f": "1e-5")",
                              R"("h.*.ln_{1,2}": 1e-5, "ln_f": {"eps": "1e-5", "gain": "w"})");
  json = replaced(json, R"("wte.weight": 1, "wpe.weight": 1)", R"("w{t,p}e.weight": 1)");
  json = replaced(json, R"("h.*.attn.c_proj.weight": 1, "h.*.attn.c_proj.bias": 0,)", R"("h.*.{attn,mlp}.c_proj": 1)");
  json = replaced(json, R"("h.*.mlp.c_proj.weight": 1, "h.*.mlp.c_proj.bias": 0)", "");
  json = replaced(json, R"("h.*.attn.bias")", R"("h.{0,1}.attn.bias")");
  check_same(state, placed(state), placed(state, json));
}

TEST_CASE("a gain that is stored as 1+w is one more than the stored number") {
  const TensorMap state = gpt2();
  TensorMap less;  // its gains are multiples of 1/64, so subtracting 1 is exact
  TensorMap plain;
  for (const auto& [name, tensor] : state) {
    const bool gain = name.find("ln_") != name.npos && name.ends_with("weight");
    const Tensor value = gain ? floor(tensor * 64.0) / 64.0 : tensor;
    plain.add(name, value), less.add(name, gain ? value - 1.0 : value);
  }
  std::string json = kGpt2;
  for (const char* norm : {"h.*.ln_1", "h.*.ln_2", "ln_f"})
    json = replaced(json, text('"', norm, "\": \"1e-5\""), text('"', norm, "\": {\"eps\": 1e-5, \"gain\": \"1+w\"}"));
  const Conversion expected = convert(plain, placed(plain), Form::crms_norm),
                   found = convert(less, placed(less, json), Form::crms_norm);
  for (const auto& [name, tensor] : expected.exact)
    if (is_floating(tensor.dtype())) CHECK(largest(found.exact.at(name) - tensor) == 0);
  CHECK(verify_streams(ModelFile{less, {}}, placed(less, json), ModelFile{plain, {}}, placed(plain)).equivalent());
  CHECK_FALSE(verify_streams(ModelFile{less, {}}, placed(less), ModelFile{plain, {}}, placed(plain)).equivalent());
  CHECK(streams::spec_of(placed(less, json)).find("\"gain\": \"1+w\"") != std::string::npos);
}

TEST_CASE("norms that are kept hold their gains, where others than readers see their rows or nothing is to be folded") {
  TensorMap state = gpt2();
  std::string json = replaced(kGpt2, R"("tied":    {"wte.weight": {"head": "lm_head.weight", "norm": "ln_f"}},)", "");
  CHECK_THROWS_WITH(placed(state, json), Contains("can fold in the gain of 'ln_f'"));
  json = replaced(json, "\"others\"", R"("kept": ["ln_f"], "others")");
  const streams::Plan headless = placed(state, json);
  const Conversion c = convert(state, headless, Form::rms_norm);
  CHECK(compare_streams(state, headless, c.state, c.plan).size < 1e-13);
  CHECK(largest(c.state.at("ln_f.weight") - state.at("ln_f.weight")) == 0);
  CHECK(c.state.find("h.0.ln_1.weight") == nullptr);
  CHECK_THROWS_WITH(convert(state, headless, Form::crms_norm),
                    Contains("norm 'ln_f' is to keep its gain of 8 entries"));
  // The same description reads the result; a gain that no reader has is compared, too.
  const auto verdict = [&](const TensorMap& other) {
    return verify_streams(ModelFile{state, {}}, headless, ModelFile{other, {}}, placed(other, json, Form::rms_norm));
  };
  CHECK(verdict(c.state).equivalent());
  TensorMap wrong;
  for (const auto& [name, tensor] : c.state) wrong.add(name, name == "ln_f.bias" ? tensor * 1.001 : tensor);
  CHECK_THAT(verdict(wrong).sentence(), Contains("different: ") && Contains("ln_f.bias["));

  streams::Plan none = placed(state);
  for (streams::Plan::Norm& n : none.norms) n.folds = false;
  const Conversion unfolded = convert(state, none, Form::rms_norm);
  CHECK(compare_streams(state, none, unfolded.state, unfolded.plan).size < 1e-13);
  CHECK(unfolded.state.size() == state.size() + 1);  // the head
  for (const auto& [name, tensor] : state) {
    INFO(name);
    const bool writer = name.find("c_proj") != name.npos || name.starts_with("w");
    if (is_floating(tensor.dtype())) CHECK((largest(unfolded.state.at(name) - tensor) == 0) == !writer);
  }
  CHECK(largest(unfolded.state.at("lm_head.weight") - state.at("wte.weight")) == 0);
}

TEST_CASE("a tensor that a description leaves out or names twice is refused by name") {
  const TensorMap state = gpt2();
  CHECK_THROWS_WITH(placed(state, ""), Contains("json"));
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"\"width\": 8,", "", "\"width\" is 0"},
      {"\"width\": 8", "\"width\": 8, \"width\": 8", "twice"},
      {"\"width\": 8", "\"width\": -8", "\"width\" is '-8', expected a whole number from 0 on"},
      {"\"wpe.weight\": 1", "\"wpe.weight\": 1, \"wpe.weight\": 1", "\"wpe.weight\" is there twice"},
      {"\"wpe.weight\": 1", "\"wpe.weight\": [1]", "writer \"wpe.weight\" is '[1]', expected a whole number"},
      {"\"wpe.weight\": 1", "\"wpe.weight\": {\"dim\": 9}", "no dimension 9"},
      {"\"norm\": \"ln_f\"", "\"norm\": 3", "\"norm\" of tied \"wte.weight\" is '3', expected a string"},
      {"\"width\": 8", "\"width\": 8,,", "json: byte "},
      {"\"others\"", "\"rest\"", "\"rest\""},
      {"\"1e-5\"", "\"small\"", "small"},
      {"\"1e-5\"", "{\"eps\": 1e-5, \"gain\": \"2+w\"}", "the gain of norm \"h.*.ln_1\" is \"2+w\""},
      {"\"1e-5\"", "{\"gain\": \"w\"}", "norm \"h.*.ln_1\" has no \"eps\""},
      {"\"1e-5\"", "{\"epsilon\": 1e-5}", "has an entry \"epsilon\""},
      {"\"others\"", "\"kept\": [\"ln_g\"], \"others\"", "no norm is called \"ln_g\""},
      {"\"h.*.attn.bias\"", "\"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}\"", "more than 64 patterns"},
      {"\"wpe.weight\"", "\"wpes.weight\"", "no tensor is called \"wpes.weight\""},
      {"\"wpe.weight\"", "\"*.weight\"", "tensor 'wte.weight' is"},
      {"{\"dim\": 0, \"norm\": \"h.*.ln_1\"}", "{\"norm\": \"h.*.ln_1\"}", "no \"dim\""},
      {"h.*.ln_1\"}", "h.*.*.ln_1\"}", "more stars"},
      {"\"head\": \"lm_head.weight\"", "\"head\": \"lm_head\"", "\"head\" must end"},
      {"\"h.*.attn.bias\"", "\"*.*.*.*\"", "more than three stars"}};
  for (const auto& [from, to, says] : wrong)
    CHECK_THROWS_WITH(placed(state, replaced(kGpt2, from, to)), Contains(says));
  // A tensor without any description is refused.
  CHECK_THROWS_WITH(placed(state, replaced(kGpt2, "\"wpe.weight\": 1,", "")),
                    Contains("'wpe.weight'") && Contains("unexpected"));
  // A norm without a description stops it, too.
  CHECK_THROWS_WITH(placed(state, replaced(kGpt2, "\"h.*.ln_2\": \"1e-5\",", "")), Contains("h.0.ln_2"));
}

TEST_CASE("norms without gain and bias are known by their readers") {
  TensorMap state;
  manual_seed(2);
  state.add("table", randn({5, 6}, kF64) + 1.0);
  state.add("out.0.weight", randn({3, 6}, kF64));
  const streams::Plan layout =
      streams::plan_in(streams::Layout::from_json(R"({"width": 6, "norms": {"norm.*": "1e-12"}, "writers": {"table": 1},
                                         "readers": {"out.*.weight": {"dim": 1, "norm": "norm.*"}}})"),
                       state, Form::layer_norm);
  REQUIRE(layout.norms.size() == 1);
  CHECK(layout.norms[0].name == "norm.0");
  CHECK(layout.norms[0].eps == 1e-12);
  const Conversion c = convert(state, layout, Form::crms_norm);
  CHECK(compare_streams(state, layout, c.state, c.plan).size < 1e-13);
}
