// A model's state: files, copies and checkpoints have the same bits. Every option of a model does something.
#include "io/checkpoint.h"
#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "nn/vit.h"
#include "optim/adam.h"
#include "tests/model_cases/model_case.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::test;
using streams::Form;

namespace {

// nn::clone() of a module of the library.
std::unique_ptr<nn::Module> copy_of(const nn::Module& module) {
  if (const auto* m = dynamic_cast<const nn::Gpt*>(&module)) return std::make_unique<nn::Gpt>(nn::clone(*m));
  if (const auto* m = dynamic_cast<const nn::Vit*>(&module)) return std::make_unique<nn::Vit>(nn::clone(*m));
  return std::make_unique<nn::EncoderDecoder>(nn::clone(dynamic_cast<const nn::EncoderDecoder&>(module)));
}

// Everything that these options can change: names, shapes and initial values of parameters, and outputs in training.
std::string seen(const training::ModelOptions& options) {
  const NoGrad no_grad;
  manual_seed(1);
  const std::unique_ptr<nn::Module> model = options.make();
  std::string all;
  for (const nn::NamedParameter& p : model->named_parameters())
    all += text(p.name, p.tensor.shape(), sum(p.tensor.to(DType::f64)).item(), '\n');
  const Tensor inputs = options.inputs(2, 5);
  const Tensor y = (*model)(is_floating(inputs.dtype()) ? inputs.to(DType::f32) : inputs);
  for (const float v : y.to_vector<float>()) all += text(v, ' ');
  return all;
}

}  // namespace

TEST_CASE("models: a file says what the model is, and the file, a state and a copy have its bits") {
  const TempFolder folder;
  for (const ModelCase& c : model_cases()) {
    const Form form = forms_of(c).back();
    INFO(c.name << ", " << name_of(form));
    const std::unique_ptr<nn::Module> model = drawn(c, {.form = form}), other = drawn(c, {.form = form}, 9);
    const Tensor inputs = batch_of(c).inputs;
    model->eval(), other->eval();
    const Tensor expected = (*model)(inputs);
    const Metadata description = training::describe(*model);
    CHECK(training::ModelOptions(description).description() == description);
    training::save_model(folder / "model", *model);
    CHECK(same_bytes((*training::load_model(folder / "model"))(inputs), expected));
    other->load_state_dict(model->state_dict());
    CHECK(same_bytes((*other)(inputs), expected));
    const std::unique_ptr<nn::Module> copy = copy_of(*model);
    CHECK(same_bytes((*copy)(inputs), expected));
    fill(copy->parameters()[0], 0);
    CHECK(same_bytes((*model)(inputs), expected));
  }
}

TEST_CASE("models: a training goes on from its checkpoint with the same bits") {
  const TempFolder folder;
  for (const ModelCase& c : model_cases()) {
    INFO(c.name);
    const auto [inputs, targets] = batch_of(c);
    const training::Examples batch{is_floating(inputs.dtype()) ? inputs.to(DType::f32) : inputs, targets};
    const auto make = [&](uint64_t seed) {
      manual_seed(seed);
      return c.model.make({.form = forms_of(c).back()});
    };
    const std::unique_ptr<nn::Module> model = make(1), resumed = make(2);
    optim::AdamW adamw(model->parameters(), {.lr = 0.01}), other(resumed->parameters(), {.lr = 0.01});
    training::Step step(*model, adamw), other_step(*resumed, other);
    for (int i = 0; i < 2; ++i) step(batch);
    save_checkpoint(folder / "checkpoint", {model->state_dict(), adamw.state_dict(), {}});
    const Checkpoint saved = load_checkpoint(folder / "checkpoint");
    resumed->load_state_dict(saved.weights);
    other.load_state_dict(saved.optimizer);
    for (training::Step* s : {&step, &other_step}) {
      manual_seed(3);  // dropout
      (*s)(batch);
    }
    const TensorMap state = resumed->state_dict();
    for (const auto& [name, tensor] : model->state_dict()) {
      INFO(name);
      CHECK(same_bytes(state.at(name), tensor));
    }
  }
}

TEST_CASE("models: every option has a row in which it changes parameters, initial values or outputs") {
  const auto names_of = [](auto&& options) {
    std::set<std::string> names;
    for (const training::Option& o : options)
      if (!o.help.empty()) names.insert(o.name);
    return names;
  };
  training::Fields transformer, stream;
  nn::TransformerOptions t;
  streams::StreamOptions s;
  fields(t, transformer), fields(s, stream);
  // Models share the Transformer's options, so a row of one model is enough. Every property runs through the stream's.
  const std::set<std::string> shared = names_of(transformer.options), of_stream = names_of(stream.options);
  const auto key = [&](const training::ModelRow& row, const std::string& name) {
    return text(shared.contains(name) ? "transformer" : row.name, " --", name);
  };
  std::set<std::string> unseen;
  for (const training::ModelRow* row : training::kModels)
    for (const std::string& name : names_of(training::ModelOptions(*row).options()))
      if (!of_stream.contains(name)) unseen.insert(key(*row, name));
  for (const ModelCase& c : model_cases()) {
    const std::string with = seen(c.model);
    training::ModelOptions defaults(c.model.row());
    for (const training::Option& o : defaults.options()) {
      const std::string name = key(c.model.row(), o.name);
      if (!unseen.contains(name) || o.text() == c.model.value(o.name)) continue;
      training::ModelOptions without = c.model;
      without.options(o.name)[0].set(o.text());
      try {
        if (seen(without) != with) unseen.erase(name);
      } catch (const Error&) {  // the row's other options need it
      }
    }
  }
  CHECK(unseen == std::set<std::string>());
}
