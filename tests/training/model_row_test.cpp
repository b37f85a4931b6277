// Rows: a model and an optimizer that the library does not know go where its own go.
#include <fstream>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "core/random.h"
#include "optim/lion.h"
#include "streams/stream.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tempered.h"
#include "training/model_file.h"
#include "training/models/own_option.h"
#include "training/optimizers.h"
#include "training/records/held_out.h"
#include "training/records/manifest.h"
#include "training/records/training_text.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using test::kTempered;
using test::kWithTempered;

namespace {

TrainingOptions options(const TempFolder& folder) {
  std::ofstream out(folder / "text");
  for (int i = 0; i < 2000; ++i) out << "abcd efg"[i * i % 7] << "xyz "[i % 4];
  return {.model = &kTempered,
          .data = folder / "text",
          .lr = 1e-2,
          .batch = 8,
          .width = 8,
          .depth = 1,
          .heads = 2,
          .context = 6,
          .dtype = DType::f64};
}

}  // namespace

TEST_CASE("a model with a row of its own trains, is tested, described, saved and loaded") {
  const TempFolder folder;
  const TrainingOptions o = options(folder);
  Source source(o);
  manual_seed(3);
  const auto model = build_model(o, source.shape(), streams::Stream(streams::Form::crms_norm, o.width));
  REQUIRE(dynamic_cast<test::Tempered*>(model.get()));
  const auto optimizer = build_optimizer(o, model->named_parameters());
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    const Examples batch = source.batch(step);
    const Tensor loss = cross_entropy((*model)(batch.inputs), batch.targets);
    optimizer->zero_grad();
    backward(loss);
    optimizer->step(1);
    (step == 0 ? first : last) = loss.item();
  }
  CHECK(last < 0.8 * first);
  nn::Module* models[] = {model.get()};
  const auto pass = test_pass(source, models);
  REQUIRE(pass);
  CHECK(pass->predictions > 0);
  CHECK_THAT(evaluation_text({60, pass->scores[0].loss, pass->scores[0].right, pass->predictions}, o.model->input),
             Contains("perplexity") && Contains("characters"));

  const OptionList list = option_list(o);
  const auto listed = [&](const char* name) {
    for (const auto& [option, value] : list)
      if (option == name) return value;
    return std::string("none");
  };
  CHECK(listed("model") == "tempered (from outside)");
  CHECK(listed("context") == "6");
  for (const char* others : {"patch", "tied", "mean-pool"}) CHECK(listed(others) == "none");

  const Metadata description = describe(*model, kWithTempered);
  CHECK(description.at("model.kind") == "tempered");
  CHECK(description.at("model.temperature") == "4");
  CHECK(description.at("model.positions") == "none");
  CHECK(description.at("model.stream") == "crms_norm");
  CHECK_THROWS_WITH(describe(*model), Contains("none of those that are listed"));
  const std::string path = folder / "model.safetensors";
  save_safetensors(path, model->state_dict(), description);
  const ModelFile file = load_model_file(path);
  CHECK(file.description == description);
  CHECK_THROWS_WITH(ModelOptions(file.description), Contains("'tempered', expected gpt or translator or vit"));

  const ModelOptions loaded(file.description, kWithTempered);
  CHECK(&loaded.row() == &kTempered);
  CHECK(loaded.description() == description);
  CHECK_NOTHROW(loaded.check_size(file.state));
  const auto again = loaded.build();
  again->load_state_dict(file.state);
  const Tensor ids = loaded.inputs(2, 1);
  CHECK(ids.size(1) == 6);
  NoGrad no_grad;
  model->eval();
  CHECK((*again)(ids).to_vector<double>() == (*model)(ids).to_vector<double>());
  const auto pretended = [&](const char* entry, const char* value) {
    Metadata other = description;
    other[entry] = value;
    return other;
  };
  CHECK_THROWS_WITH(ModelOptions(pretended("model.temperature", "warm"), kWithTempered), Contains("'warm'"));
  CHECK_THROWS_WITH(ModelOptions(pretended("model.vocab", "100000"), kWithTempered).check_size(file.state),
                    Contains("about"));
}

TEST_CASE("options of a model become those of a training, and back, whatever the row") {
  const TempFolder folder;
  TrainingOptions o = options(folder);
  o.patch = 3, o.mean_pool = o.tied = true, o.mlp = 20, o.positions = nn::Positions::rotary, o.affine = true;
  const ModelShape shape{.image = 6, .channels = 2, .classes = 4, .vocab = 9};
  for (const ModelRow* row : kWithTempered) {
    INFO(row->name);
    o.model = row;
    const ModelOptions there(o, shape, streams::Stream(streams::Form::rms_norm, o.width));
    TrainingOptions back;
    ModelShape given;
    there.give(back, given);
    CHECK(back.model == row);
    CHECK(back.mlp == 20);
    CHECK(back.positions == nn::Positions::rotary);
    CHECK(back.tied == has(*row, "tied"));
    CHECK(back.mean_pool == has(*row, "mean_pool"));
    CHECK(back.patch == (has(*row, "patch") ? 3 : TrainingOptions().patch));
    CHECK(back.context == (has(*row, "context") ? 6 : TrainingOptions().context));
    CHECK((row->input == Input::images ? given.image == 6 && given.channels == 2 && given.classes == 4
                                       : given.vocab == 9));
    ModelOptions untied = there;
    untied.untie();
    untied.give(back, given);
    CHECK_FALSE(back.tied);
  }
  CHECK(models_with("context") == "gpt, translator");
  CHECK(models_with(Input::images) == "vit");
}

TEST_CASE("an optimizer with a row of its own is built; names are those of the table") {
  constexpr OptimizerRow kFast = {
      .name = "fast_lion",
      .make = [](const TrainingOptions& o,
                 const std::vector<nn::NamedParameter>& p) -> std::unique_ptr<optim::Optimizer> {
        return std::make_unique<optim::Lion>(std::vector{p[0].tensor}, optim::LionOptions{.lr = 10 * o.lr});
      },
      .weight_decay = 0.25};
  const TempFolder folder;
  TrainingOptions o = options(folder);
  o.optimizer = &kFast;
  CHECK(o.decay() == 0.25);
  Source source(o);
  const auto model = build_model(o, source.shape(), streams::Stream(streams::Form::layer_norm, o.width));
  CHECK(build_optimizer(o, model->named_parameters())->parameters().size() == 1);
  for (const OptimizerRow& row : optimizers()) CHECK(&optimizer(row.name) == &row);
  CHECK(TrainingOptions().decay() == 0.01);
  CHECK_THROWS_WITH(optimizer("newton"), Contains("'newton'") && Contains("lion") && Contains("muon_shaped"));
}

TEST_CASE("a published size of a model is the options of a training") {
  TrainingOptions o;
  ModelShape shape;
  ModelOptions::preset(kGpt, "7b").give(o, shape);
  CHECK((o.model == &kGpt && o.context == 2048 && shape.vocab == 32000));
  CHECK((o.width == 4096 && o.depth == 32 && o.heads == 32 && o.mlp == 11008));
  CHECK((o.activation == nn::Activation::swiglu && o.positions == nn::Positions::rotary_halves && o.eps == 1e-6));
  CHECK((o.affine && !o.norm_bias && !o.bias && !o.tied && o.initialisation == nn::Initialisation::normal));
  CHECK_THROWS_WITH(ModelOptions::preset(kGpt, "8b"), Contains("no size is called '8b'"));
  CHECK_THROWS_WITH(ModelOptions::preset(kVit, "7b"), "preset '7b': of a vit no size is known by name");
}
