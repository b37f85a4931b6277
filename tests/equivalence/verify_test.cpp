// The checks between a conversion and the written file: they detect a fault in any single tensor, and accept rounding.
#include "equivalence/convert/state.h"
#include "tests/equivalence/model_files.h"

namespace {

// The state with the last entry of one tensor off by `error` times the tensor's largest entry.
TensorMap with_fault(const TensorMap& state, const std::string& name, double error) {
  const Tensor& t = state.at(name);
  std::vector<double> values = t.to_vector<double>();
  values.back() += error * largest(t);
  return with_tensor(state, name, from_vector(values, t.shape()));
}

}  // namespace

TEST_CASE("the stream check agrees with a conversion, and names the one tensor that is wrong") {
  manual_seed(1);
  nn::Gpt gpt = streams::make<nn::Gpt>(small_gpt({.affine = true}, true));
  const ModelFile file = filled_file(gpt);
  const streams::Plan plan = streams::plan_of(gpt);
  for (Form to : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    const ModelConversion c = convert_model(file, to);
    const Deviation right = compare_streams(file.state, plan, c.conversion.exact, c.conversion.plan);
    CHECK(right.explained());
    CHECK(right.control > 0);
    for (const auto& [name, tensor] : c.conversion.state) {
      if (!c.conversion.plan.writer(name) && !c.conversion.plan.reader(name)) continue;
      INFO(name_of(to) << " " << name);
      std::map<std::string, double> of;
      const Deviation wrong =
          compare_streams(file.state, plan, with_fault(c.conversion.exact, name, 1e-9), c.conversion.plan, &of);
      CHECK_FALSE(wrong.explained());
      CHECK(of.at(name) == wrong.size);  // no other tensor deviates more than the faulty one
    }
  }
}

TEST_CASE("the stream check reads a tied table in compressed storage as the model does") {
  manual_seed(6);
  nn::Gpt gpt =
      streams::make<nn::Gpt>(small_gpt({}, true), {.form = Form::crms_norm, .storage = streams::Stored::mapped});
  const ModelFile file = filled_file(gpt);
  const ModelConversion c = convert_model(file, Form::layer_norm);
  CHECK(compare_streams(file.state, streams::plan_of(gpt), c.conversion.exact, c.conversion.plan).explained());
}

TEST_CASE("two agree within 4 times what rounding does, and 64 eps") {
  CHECK(output_deviation("", 3.9e-12, 1e-12).explained());
  CHECK_FALSE(output_deviation("", 4.1e-12, 1e-12).explained());
  CHECK(output_deviation("", 0, 0).bound == 64 * epsilon(DType::f64));
}

TEST_CASE("two models are compared by their logits") {
  manual_seed(2);
  const ModelFile file = file_of(small_vit({.affine = true})), crms = converted(file, Form::crms_norm);
  const Tensor inputs = ModelOptions(file.description).inputs(3, 1);
  const auto compare = [&](const Metadata& description, const TensorMap& state) {
    return compare_models(file.description, file.state, description, state, inputs);
  };
  CHECK(compare(crms.description, crms.state).explained());
  CHECK_FALSE(compare(crms.description, with_fault(crms.state, "blocks.1.mlp.fc1.weight", 1e-9)).explained());
  CHECK_FALSE(compare(crms.description, with_fault(crms.state, "position", NAN)).explained());
  CHECK_FALSE(compare(with_option(crms, "eps", "1e-06").description, crms.state).explained());
}

TEST_CASE("a state rounded to f32 is equivalent in f32, not in f64") {
  manual_seed(3);
  const ModelFile file = file_of(small_gpt({.affine = true}), {}, DType::f32), crms = converted(file, Form::crms_norm);
  CHECK(coarsest(crms.state) == DType::f32);
  const Tensor inputs = ModelOptions(file.description).inputs(3, 1);
  CHECK(compare_models(file.description, file.state, crms.description, crms.state, inputs).explained());
  CHECK_FALSE(
      compare_models(file.description, widened(file.state), crms.description, widened(crms.state), inputs).explained());
}

TEST_CASE("a model's options go into a file as text and come back") {
  constexpr nn::MixedPrecision kMixed{nn::Precision::bf16, nn::Precision::bf16};
  const Metadata description = describe(streams::make<nn::Vit>(small_vit({.activation = nn::Activation::relu,
                                                                          .affine = true,
                                                                          .bias = false,
                                                                          .eps = 1.0 / 3e5,
                                                                          .connection = nn::kPostLn,
                                                                          .precision = kMixed},
                                                                         true)));
  const ModelOptions options(description);
  CHECK(&options.row() == &kVit);
  CHECK(options.number("image") == 6);
  CHECK(options.flag("mean_pool"));
  const nn::TransformerOptions& t = options.transformer();
  CHECK((t.width == 9 && t.activation == nn::Activation::relu && t.eps == 1.0 / 3e5));
  CHECK((t.connection == nn::kPostLn && t.precision == kMixed));
  CHECK(describe(*options.build()) == description);
  for (const auto& [key, value] :
       {std::pair{"connection", "post_ln"}, {"precision", "bf16"}, {"stream_precision", "bf16"}})
    CHECK(description.at(std::string("model.") + key) == value);

  CHECK_THROWS_WITH(ModelOptions(Metadata()), Contains("does not say what model"));
  const struct {
    const char *key, *value, *says;
  } wrong[] = {{"kind", "rnn", "'rnn'"},
               {"width", "9x", "model.width' is '9x'"},
               {"form", "batch_norm", "'batch_norm'"},
               {"colour", "red", "model file: entry 'model.colour' is not an option of a vit"},
               {"connection", "post", "entry 'model.connection' is 'post', expected one of pre_ln|post_ln|"},
               {"precision", "f16", "entry 'model.precision' is 'f16', expected one of full|bf16"}};
  for (const auto& [key, value, says] : wrong) {
    Metadata m = description;
    m[std::string("model.") + key] = value;
    CHECK_THROWS_WITH(ModelOptions(m), Contains(says));
  }
  for (const std::string silent : {"model.eps", "model.connection", "model.precision"}) {
    Metadata m = description;
    m.erase(silent);
    CHECK_THROWS_WITH(ModelOptions(m), Contains(silent));
  }
}

TEST_CASE("sizes that the file does not hold are refused before memory is taken") {
  const ModelFile file = file_of(small_gpt());
  const std::pair<const char*, const char*> sizes[] = {{"width", "1000000000"},     {"vocab", "9000000000000000000"},
                                                       {"context", "100000000000"}, {"depth", "2000000000"},
                                                       {"mlp_width", "-5"},         {"heads", "0"}};
  for (const auto& [key, value] : sizes) {
    INFO(key << " " << value);
    const ModelFile bad = with_option(file, key, value);
    CHECK_THROWS_AS(convert_model(bad, Form::rms_norm), Error);
    CHECK_THROWS_AS(logits(bad.description, file.state, ModelOptions(file.description).inputs(1, 1)), Error);
  }
  // A plausible size, but not the size of this file.
  CHECK_THROWS_WITH(convert_model(with_option(file, "mlp_width", "33"), Form::rms_norm),
                    Contains("fc1.weight") && Contains("[32, 8]"));
  CHECK_THROWS_WITH(convert_model(with_option(file, "depth", "3"), Form::rms_norm),
                    Contains("blocks.2.") && Contains("missing"));
}

TEST_CASE("verify: what convert makes of subnormal writers is the same function, and another is not") {
  for (const auto& [dtype, size] : {std::pair{DType::f32, 1e-42}, {DType::bf16, 1e-39}, {DType::f64, 1e-310}})
    for (Form to : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
      INFO(name_of(dtype) << " " << name_of(to));
      manual_seed(3);
      const ModelFile drawn = file_of(small_gpt());
      const Tensor proj = drawn.state.at("blocks.0.attn.proj.weight") * size;
      ModelFile file{{}, drawn.description};
      for (const auto& [name, tensor] : with_tensor(drawn.state, "blocks.0.attn.proj.weight", proj))
        file.state.add(name, tensor.to(dtype));
      const ModelFile there = converted(file, to);
      CHECK(verify_models(file, there).equivalent());
      CHECK_NOTHROW(convert_model(there, Form::layer_norm));
      const Tensor other = file.state.at("blocks.0.attn.proj.weight") * 3.0;
      CHECK_FALSE(verify_models(with_tensor(file, "blocks.0.attn.proj.weight", other), there).equivalent());
    }
}

TEST_CASE("verify: an option that is computed from others is equal to its computed value") {
  manual_seed(3);
  const nn::TransformerOptions t{.width = 8, .depth = 2, .heads = 2, .mlp_width = 12, .affine = true};
  nn::EncoderDecoder model({.vocab = 9, .context = 6, .decoder_depth = 2, .transformer = t});
  const ModelFile file = filled_file(model);
  CHECK(verify_models(file, with_option(file, "decoder_depth", "0")).equivalent());
  CHECK_FALSE(verify_models(file, with_option(file, "pad", "1")).equivalent());
}
