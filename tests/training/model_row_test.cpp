// Rows: a model and an optimizer that the library does not know go where its own go.
#include <fstream>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "core/random.h"
#include "nn/residual/all.h"
#include "optim/sign.h"
#include "streams/stream.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tempered.h"
#include "training/model_options.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/optimizers.h"
#include "training/records/held_out.h"
#include "training/records/manifest.h"
#include "training/records/training_text.h"
#include "training/source.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using test::kTempered;
using test::kWithTempered;

namespace {

TrainingOptions options(const TempFolder& folder) {
  std::ofstream out(folder / "text");
  for (int i = 0; i < 2000; ++i) out << "abcd efg"[i * i % 7] << "xyz "[i % 4];
  return {.model = {kTempered, {.width = 8, .depth = 1, .heads = 2}, {{"context", 6}}},
          .data = folder / "text",
          .lr = 1e-2,
          .batch = 8};
}

}  // namespace

TEST_CASE("a model with a row of its own trains, is tested, described, saved and loaded") {
  const TempFolder folder;
  const TrainingOptions o = options(folder);
  Source source(o);
  manual_seed(3);
  const auto model = build_model(source.options(), {.form = streams::Form::crms_norm});
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
  CHECK_THAT(evaluation_text({60, pass->scores[0].loss, pass->scores[0].right, pass->predictions}, o.model.row().input),
             Contains("perplexity") && Contains("tokens"));

  const OptionList list = option_list(o);
  const auto listed = [&](const std::string& name) {
    const auto at = std::ranges::find(list, name, [](const auto& option) { return option.first; });
    return at == list.end() ? "none" : at->second;
  };
  CHECK(listed("model") == "tempered (from outside)");
  CHECK(listed("context") == "6");
  for (const char* others : {"patch", "tied", "mean_pool"}) CHECK(listed(others) == "none");

  const Metadata description = describe(*model, kWithTempered);
  CHECK(description.at("model.kind") == "tempered");
  CHECK(description.at("model.temperature") == "4");
  CHECK(description.at("model.positions") == "none");
  CHECK(description.at("model.form") == "crms_norm");
  CHECK_THROWS_WITH(describe(*model), Contains("no row has the model's class"));
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

TEST_CASE("options without effect are described by their defaults: two models of one function have one description") {
  const auto described = [](nn::TransformerOptions t, std::initializer_list<NamedValue> own = {}) {
    return ModelOptions(kGpt, t, own).description();
  };
  const Metadata plain = described({}), post = described({.connection = nn::kPostLn});
  CHECK(described({.final_norm = false}) != plain);
  CHECK(described({.final_norm = false, .connection = nn::kPostLn}) == post);
  CHECK(described({.rotary_base = 500, .rotary_share = 0.5}) == plain);
  CHECK(described({.positions = nn::Positions::rotary, .rotary_base = 500}) !=
        described({.positions = nn::Positions::rotary}));
  CHECK(described({}, {{"head_bias", true}}) != plain);
  CHECK(described({}, {{"head_bias", true}, {"tied", true}}) == described({}, {{"tied", true}}));
  CHECK(described({.bias = false}, {{"head_bias", true}}) == described({.bias = false}));
  CHECK(described({}, {{"position_offset", 2}}) != plain);
  CHECK(described({.positions = nn::Positions::none}, {{"position_offset", 2}}) ==
        described({.positions = nn::Positions::none}));
}

TEST_CASE("options of every model are set by name, read back from a file, and refused by name") {
  for (const ModelRow* row : kWithTempered) {
    INFO(row->name);
    ModelOptions m(*row, {.width = 8, .depth = 1, .heads = 2, .mlp_width = 20, .affine = true});
    m.stream().form = streams::Form::rms_norm;
    m.fit({{"patch", 3}, {"mean_pool", true}, {"tied", true}, {"context", 6}, {"image", 6}, {"vocab", 9}});
    m.set({"positions", nn::Positions::rotary});
    CHECK(m.transformer().positions == nn::Positions::rotary);
    CHECK(m.flag("tied") == has(*row, "tied"));
    CHECK(m.flag("mean_pool") == has(*row, "mean_pool"));
    CHECK(m.number("patch") == (has(*row, "patch") ? 3 : 0));
    CHECK(m.number(row->input == Input::images ? "image" : "vocab") == (row->input == Input::images ? 6 : 9));
    const Metadata written = m.as_written();
    CHECK(written.at("model.mlp_width") == "20");
    CHECK(written.at("model.causal") == (row->causal ? "true" : "false"));
    CHECK(written.at("model.form") == "rms_norm");
    CHECK(written.at("model.positions") == "rotary");
    CHECK(ModelOptions(written, kWithTempered).as_written() == written);
    CHECK_THROWS_WITH(m.set({"heads", 0}),
                      text(row->name, ": heads is '0', expected a whole number from 1 to 16777216"));
    CHECK_THROWS_WITH(m.set({"colour", 1}), text(row->name, ": it has no option colour"));
    CHECK(m.as_written() == written);
    if (!row->causal) continue;
    Metadata sees_all = written;
    sees_all["model.causal"] = "false";
    CHECK_THROWS_WITH(ModelOptions(sees_all, kWithTempered),
                      text("model file: entry 'model.causal' is 'false', expected true: a ", row->title, " is causal"));
  }
  CHECK(models_with("context") == "gpt, translator");
  CHECK(models_with(Input::images) == "vit");
}

TEST_CASE("an option that is not marked for a backend is refused by it, unless it has its default value") {
  ModelOptions m(kGpt, {.width = 8, .depth = 1, .heads = 2, .kv_heads = 1}, {{"context", 6}});
  CHECK(m.first_without(kInOnnx).empty());
  CHECK(m.first_without(kInRounding) == "kv_heads 1, expected 0");
  m.set({"kv_heads", 0});
  CHECK(m.first_without(kInRounding).empty());
  m.set({"dropout", 0.5});
  CHECK(m.first_without(kInOnnx).empty());
  CHECK(m.first_without(kInRounding) == "dropout 0.5, expected 0");
  const ModelOptions post(kVit, {.connection = nn::kPostLn});
  CHECK(post.first_without(kInOnnx) == "connection post_ln, expected pre_ln");
  const ModelOptions warm(kTempered, {}, {{"temperature", 2.0}});
  CHECK(warm.first_without(kInOnnx | kInRounding | kTrainingOnly) == "temperature 2, expected 4");

  std::string only_in_training;
  for (const Option& option : ModelOptions(kGpt).options())
    if (is_training_only(text(kOptionPrefix, option.name))) only_in_training += option.name + " ";
  CHECK(only_in_training == "scaled_gains dropout stochastic_depth precision stream_precision initialisation ");
  CHECK_FALSE(is_training_only("model.kind"));
  CHECK_FALSE(is_training_only("dropout"));
}

TEST_CASE("docs/model_files.md names every option that a file has") {
  const std::string page = test::read_text("docs/model_files.md");
  for (const ModelRow* row : kModels)
    for (const auto& [key, _] : ModelOptions(*row).as_written()) {
      INFO(key);
      CHECK(page.find("`" + key + "`") != page.npos);
    }
}

TEST_CASE("an optimizer with its own row is built; names come from the table") {
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
  const auto model = build_model(source.options(), {});
  CHECK(build_optimizer(o, model->named_parameters())->parameters().size() == 1);
  for (const OptimizerRow& row : optimizers()) CHECK(&optimizer(row.name) == &row);
  CHECK(TrainingOptions().decay() == 0.01);
  CHECK_THROWS_WITH(optimizer("newton"), Contains("'newton'") && Contains("lion") && Contains("muon_shaped"));
}

TEST_CASE("a published size of a model is its options") {
  const ModelOptions m = ModelOptions::preset(kGpt, "7b");
  const nn::TransformerOptions& t = m.transformer();
  CHECK((&m.row() == &kGpt && m.number("context") == 2048 && m.number("vocab") == 32000 && !m.flag("tied")));
  CHECK((t.width == 4096 && t.depth == 32 && t.heads == 32 && t.mlp_width == 11008));
  CHECK((t.activation == nn::Activation::swiglu && t.positions == nn::Positions::rotary_halves && t.eps == 1e-6));
  CHECK((t.affine && !t.norm_bias && !t.bias && t.initialisation == nn::Initialisation::normal));
  CHECK_THROWS_WITH(ModelOptions::preset(kGpt, "8b"), Contains("no size is called '8b'"));
  CHECK_THROWS_WITH(ModelOptions::preset(kVit, "7b"), "preset '7b': of a vit no size is known by name");
}
