// Trainer compared with a loop that is written out here, and with itself, interrupted and continued. tests/tools has
// the lines that the program prints.
#include "training/run/trainer.h"

#include <algorithm>
#include <fstream>

#include "core/random.h"
#include "core/system/failures.h"
#include "equivalence/services/initial_weights.h"
#include "io/data/text.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"
#include "training/model_options.h"
#include "training/model_file.h"
#include "training/run/saved_training.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains, Catch::Matchers::StartsWith;

namespace {

// A GPT on made-up letters, with dropout, so that a step draws random numbers.
TrainerOptions small_training(int steps) {
  TrainerOptions o;
  o.training.model = {kGpt, {.width = 8, .depth = 1, .heads = 2, .branch = {.dropout = 0.1}}, {{"context", 6}}};
  o.training.steps = steps, o.training.batch = 4, o.training.threads = 1;
  o.quiet = true;
  return o;
}

std::vector<double> losses_of(const TrainingResult& result) {
  std::vector<double> losses;
  for (const TrainingStep& s : result.steps) losses.push_back(s.loss);
  return losses;
}

}  // namespace

TEST_CASE("a Trainer takes the steps of a loop that is written out, to the last bit") {
  const TrainerOptions o = small_training(12);
  Trainer trainer(o);
  CHECK(trainer.train());

  Source source(o.training);
  manual_seed(o.training.seed);
  const auto model = build_model(source.options(), source.options().model.stream());
  const auto optimizer = build_optimizer(source.options(), model->named_parameters());
  std::vector<double> losses;
  for (int t = 0; t < 12; ++t) {
    default_generator() = {o.training.seed, static_cast<uint64_t>(t + 1) << 40};
    losses.push_back(differentiate(*model, cross_entropy_of, source.batch(t)));
    const LimitedGradients limited = limit_gradients({.norm = 1}, optimizer->parameters());
    optimizer->set_lr(o.training.rates().lr(t));
    optimizer->step(limited.scale);
  }
  CHECK(losses_of(trainer.result()) == losses);
  for (const auto& [name, tensor] : model->state_dict()) {
    INFO(name);
    CHECK(same_bytes(tensor, trainer.model().state_dict().at(name)));
  }
}

TEST_CASE("a stopped Trainer saves its checkpoint; the next one continues bit-equal to an uninterrupted one") {
  const TempFolder folder;
  Trainer whole(small_training(10));
  REQUIRE(whole.train());
  TrainerOptions o = small_training(10);
  o.checkpoint = folder / "c", o.training.ema = 0.9;
  {
    Trainer first(o);
    CHECK_FALSE(first.train([&first] { return first.step_count() == 4; }));
    CHECK(first.step_count() == 4);
  }
  Trainer second(o);
  CHECK(second.step_count() == 4);
  CHECK(second.result().first_step == 5);
  CHECK_THROWS_WITH(Trainer(o), Contains("is writing it"));  // the second holds the lock
  CHECK(second.train());
  const std::vector<double> all = losses_of(whole.result());
  CHECK(losses_of(second.result()) == std::vector<double>(all.begin() + 4, all.end()));
  for (const auto& [name, tensor] : whole.model().state_dict())
    CHECK(same_bytes(tensor, second.model().state_dict().at(name)));
}

TEST_CASE("a stopped Trainer continues with the next call of train()") {
  Trainer whole(small_training(6)), twice(small_training(6));
  REQUIRE(whole.train());
  CHECK_FALSE(twice.train([&twice] { return twice.step_count() == 2; }));
  CHECK(twice.train());
  CHECK(twice.step_count() == 6);
  CHECK(losses_of(twice.result()) == losses_of(whole.result()));
}

TEST_CASE("a Trainer refuses the checkpoint of another training, and options that contradict each other") {
  const TempFolder folder;
  TrainerOptions o = small_training(3);
  o.checkpoint = folder / "c";
  REQUIRE(Trainer(o).train());
  o.training.lr = 2e-3;
  CHECK_THROWS_WITH(Trainer(o), Contains("was trained with --lr 0.001, not 0.002; --extend continues with that"));
  o.extend = true, o.training.steps = 5;
  CHECK(Trainer(o).step_count() == 3);
  o.patience = 1;
  CHECK_THROWS_AS(Trainer(o), UsageError);
  o.patience = -1;
  CHECK_THROWS_WITH(Trainer(o), StartsWith("--patience: -1, expected a whole number from 0 to"));
  o.patience = 0, o.training.lr = 0;
  CHECK_THROWS_WITH(Trainer(o), "--lr: 0, expected a number above 0");
}

TEST_CASE("a Trainer keeps the model of the least test loss, and stops when the test loss gets no better") {
  const TempFolder folder;
  TrainerOptions o = small_training(200);
  std::ofstream(folder / "t") << data::made_text(1, 4000);
  o.training.data = folder / "t";
  o.training.lr = 1;  // the test loss grows soon
  o.evaluate_every = 2, o.patience = 3, o.best = folder / "best";
  Trainer trainer(o);
  CHECK(trainer.train());
  const TrainingResult& r = trainer.result();
  CHECK(trainer.step_count() < 200);
  CHECK(r.patience == 3);
  REQUIRE(r.best.has_value());
  const auto least = std::ranges::min_element(r.evaluations, {}, &Evaluation::loss);
  CHECK(r.best->step == least->step);
  CHECK(r.best->loss == least->loss);
  CHECK(checkpoint_values(SafetensorsFile(o.best)).at("step") == text(least->step));
}

TEST_CASE("a Trainer begins with the weights of a file, also of a converted one by services::initial_weights()") {
  const TempFolder folder;
  TrainerOptions o = small_training(3);
  o.training.model.stream().form = streams::Form::rms_norm;
  Trainer donor(o);
  REQUIRE(donor.train());
  save_model(folder / "m", donor.model());
  o.init = folder / "m", o.training.seed = 7;
  for (const bool read : {false, true}) {
    if (read)
      o.read_init = [&o](const nn::Module& model, const DataSpec& spec) {
        return services::initial_weights(o.init, model, DType::f32, spec, false);
      };
    Trainer trainer(o);
    for (const auto& [name, tensor] : donor.model().state_dict())
      CHECK(same_bytes(tensor, trainer.model().state_dict().at(name)));
  }
}

TEST_CASE("the checkpoint of a Trainer has the contents of a saved training") {
  const TempFolder f;
  TrainerOptions o = small_training(3);
  o.training.ema = 0.9, o.checkpoint = f / "c";
  Trainer trainer(o);
  CHECK(trainer.train());
  const TensorMap weights = saved_tensors(o.checkpoint, "model"), averages = saved_tensors(o.checkpoint, "average");
  for (const auto& [name, x] : trainer.model().state_dict())
    CHECK(weights.at(name).to_vector<float>() == x.to_vector<float>());
  CHECK(averages.find("0.average") != nullptr);
  CHECK(saved_tensors(o.checkpoint, "optimizer").find("0.exp_avg") != nullptr);
}
