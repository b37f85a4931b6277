// The checks that stand between a conversion and a file: they see a fault in any single tensor, and say same to
// rounding.
#include "autograd/grad_mode.h"
#include "equivalence/verify/stream_check.h"
#include "streams/transformer.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::training;
using namespace isonorm::test;
using Catch::Matchers::Contains;
using streams::Form;

namespace {

// The state with the last entry of one tensor off by `error` times the tensor's largest.
TensorMap with_fault(const TensorMap& state, const std::string& name, double error) {
  TensorMap changed;
  for (const auto& [key, tensor] : state) {
    Tensor copy = empty_like(tensor);
    copy_into(copy, tensor);
    if (key == name) copy.mutable_data<double>()[copy.numel() - 1] += error * largest(tensor);
    changed.add(key, copy);
  }
  return changed;
}

}  // namespace

TEST_CASE("the stream check agrees with a conversion, and names the one tensor that is wrong") {
  manual_seed(1);
  nn::Gpt gpt = streams::make<nn::Gpt>(small_gpt({.affine = true}, true));
  const ModelFile file = filled_file(gpt);
  const streams::Placement layout = streams::placement_of(gpt);
  for (Form to : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    const ModelConversion c = convert_model(file, to);
    const Agreement right = compare_streams(file.state, layout, c.conversion.exact, c.conversion.layout);
    CHECK(right.same());
    CHECK(right.control > 0);
    for (const streams::Place& p : c.conversion.layout.places) {
      if (p.role == streams::Role::neutral) continue;
      INFO(name_of(to) << " " << p.name);
      std::map<std::string, double> of;
      const Agreement wrong =
          compare_streams(file.state, layout, with_fault(c.conversion.exact, p.name, 1e-9), c.conversion.layout, &of);
      CHECK_FALSE(wrong.same());
      CHECK(of.at(p.name) == wrong.deviation);  // nothing deviates more than the culprit
    }
  }
}

TEST_CASE("the stream check reads a tied table in compressed storage as the model does") {
  manual_seed(6);
  nn::Gpt gpt =
      streams::make<nn::Gpt>(small_gpt({}, true), {.form = Form::crms_norm, .storage = streams::Stored::mapped});
  const ModelFile file = filled_file(gpt);
  const ModelConversion c = convert_model(file, Form::layer_norm);
  CHECK(compare_streams(file.state, streams::placement_of(gpt), c.conversion.exact, c.conversion.layout).same());
}

TEST_CASE("two agree within 4 times what rounding does, and 64 eps") {
  CHECK(Agreement{.deviation = 3.9e-12, .control = 1e-12}.same());
  CHECK_FALSE(Agreement{.deviation = 4.1e-12, .control = 1e-12}.same());
  CHECK(Agreement{.deviation = 63 * epsilon(DType::f64)}.bound() == 64 * epsilon(DType::f64));
}

TEST_CASE("two models are compared by their logits") {
  manual_seed(2);
  nn::Vit vit = streams::make<nn::Vit>(small_vit({.affine = true}));
  const ModelFile file = filled_file(vit);
  const ModelConversion c = convert_model(file, Form::crms_norm);
  const Tensor inputs = ModelOptions(file.description).inputs(3, 1);
  const auto compare = [&](const Metadata& description, const TensorMap& state) {
    return compare_models(file.description, file.state, description, state, inputs);
  };
  CHECK(compare(c.description, c.conversion.state).same());
  CHECK_FALSE(compare(c.description, with_fault(c.conversion.state, "blocks.1.mlp.fc1.weight", 1e-9)).same());
  CHECK_FALSE(compare(c.description, with_fault(c.conversion.state, "position", NAN)).same());
  Metadata other_eps = c.description;
  other_eps.insert_or_assign("model.eps", std::string("1e-06"));
  CHECK_FALSE(compare(other_eps, c.conversion.state).same());
}

TEST_CASE("what is rounded to f32 is same in f32, not in f64") {
  manual_seed(3);
  nn::Gpt gpt = streams::make<nn::Gpt>(small_gpt({.affine = true}));
  const ModelFile file = filled_file(gpt, DType::f32);
  const ModelConversion c = convert_model(file, Form::crms_norm);
  CHECK(coarsest(c.conversion.state) == DType::f32);
  const Tensor inputs = ModelOptions(file.description).inputs(3, 1);
  CHECK(compare_models(file.description, file.state, c.description, c.conversion.state, inputs).same());
  CHECK_FALSE(
      compare_models(file.description, widened(file.state), c.description, widened(c.conversion.state), inputs).same());
}

TEST_CASE("a model's options go into a file as text and come back") {
  manual_seed(4);
  nn::Vit vit = streams::make<nn::Vit>(
      small_vit({.activation = nn::Activation::relu, .affine = true, .bias = false, .eps = 1.0 / 3e5}, true));
  const Metadata description = describe(vit);
  const ModelOptions options(description);
  CHECK(&options.row() == &kVit);
  CHECK(options.number("image") == 6);
  CHECK(options.flag("mean_pool"));
  CHECK(options.transformer().width == 9);
  CHECK(options.transformer().activation == nn::Activation::relu);
  CHECK(options.transformer().eps == 1.0 / 3e5);
  CHECK(describe(*options.build()) == description);

  const auto with = [&](const std::string& key, const std::string& value) {
    Metadata m = description;
    m[key] = value;
    return m;
  };
  CHECK_THROWS_WITH(ModelOptions(Metadata()), Contains("does not say what model"));
  CHECK_THROWS_WITH(ModelOptions(with("model.kind", "rnn")), Contains("'rnn'"));
  CHECK_THROWS_WITH(ModelOptions(with("model.width", "9x")), Contains("model.width") && Contains("9x"));
  CHECK_THROWS_WITH(ModelOptions(with("model.form", "batch_norm")), Contains("batch_norm"));
  CHECK_THROWS_WITH(ModelOptions(with("model.colour", "red")),
                    "model file: entry 'model.colour' is no option of a vit");
  Metadata without = description;
  without.erase("model.eps");
  CHECK_THROWS_WITH(ModelOptions(without), Contains("model.eps"));
}

TEST_CASE("sizes that the file does not hold are refused before memory is taken") {
  manual_seed(5);
  nn::Gpt gpt = streams::make<nn::Gpt>(small_gpt());
  const ModelFile file = filled_file(gpt);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"model.width", "1000000000"},
                                                        {"model.vocab", "9000000000000000000"},
                                                        {"model.context", "100000000000"},
                                                        {"model.depth", "2000000000"},
                                                        {"model.mlp_width", "-5"},
                                                        {"model.heads", "0"}}) {
    INFO(key << " " << value);
    ModelFile bad = file;
    bad.description[key] = value;
    CHECK_THROWS_AS(convert_model(bad, Form::rms_norm), Error);
    CHECK_THROWS_AS(logits(bad.description, file.state, ModelOptions(file.description).inputs(1, 1)), Error);
  }
  ModelFile other = file;  // a plausible size, but not this file's
  other.description.insert_or_assign("model.mlp_width", std::string("33"));
  CHECK_THROWS_WITH(convert_model(other, Form::rms_norm), Contains("fc1.weight") && Contains("[32, 8]"));
  other = file;
  other.description.insert_or_assign("model.depth", std::string("3"));
  CHECK_THROWS_WITH(convert_model(other, Form::rms_norm), Contains("blocks.2.") && Contains("missing"));
}

TEST_CASE("verify: what convert makes of subnormal writers is the same function, and another is not") {
  for (const auto& [dtype, size] : {std::pair{DType::f32, 1e-42}, {DType::bf16, 1e-39}, {DType::f64, 1e-310}})
    for (Form to : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
      INFO(name_of(dtype) << " " << name_of(to));
      manual_seed(3);
      nn::Gpt gpt = streams::make<nn::Gpt>(small_gpt());
      const ModelFile drawn = filled_file(gpt);
      ModelFile file{.state = {}, .description = drawn.description};
      for (const auto& [name, tensor] : drawn.state)
        file.state.add(name, (name == "blocks.0.attn.proj.weight" ? tensor * size : tensor).to(dtype));
      const ModelConversion c = convert_model(file, to);
      const ModelFile converted{c.conversion.state, c.description};
      CHECK(verify_models(file, converted).same());
      CHECK_NOTHROW(convert_model(converted, Form::layer_norm));
      ModelFile other = file;
      other.state = {};
      for (const auto& [name, tensor] : file.state)
        other.state.add(name, name == "blocks.0.attn.proj.weight" ? tensor * 3.0 : tensor);
      CHECK_FALSE(verify_models(other, converted).same());
    }
}
