// Checkpoints and model files of models with tied and shared weights: each tensor is saved once, loads under either
// name, and the ties stay.
#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/random.h"
#include "io/checkpoint.h"
#include "nn/container.h"
#include "nn/gpt.h"
#include "nn/linear.h"
#include "optim/adam.h"
#include "optim/ema.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "training/model_file.h"
#include "training/run/saved_training.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using Names = std::vector<std::string>;

namespace {

bool same(const Tensor& x, const Tensor& y) { return x.handle() == y.handle(); }

// Layers `in` and `out` with a tied weight.
struct Tied : nn::Module {
  nn::Linear& in = add("in", nn::Linear(3, 3));
  nn::Linear& out = add("out", nn::Linear(3, 3));
  Tied() { out.weight = in.weight; }
  Tensor forward(const Tensor& x) override { return out(relu(in(x))); }
};
// The same, registered in the other order: its first name of the weight is "out.weight".
struct TiedBackwards : nn::Module {
  nn::Linear& out = add("out", nn::Linear(3, 3));
  nn::Linear& in = add("in", nn::Linear(3, 3));
  TiedBackwards() { in.weight = out.weight; }
};
struct Untied : nn::Module {
  nn::Linear& in = add("in", nn::Linear(3, 3));
  nn::Linear& out = add("out", nn::Linear(3, 3));
};

struct Run {
  Tied net;
  optim::AdamW opt{net.parameters(), {.lr = 0.1}};
  optim::Ema average{net.parameters(), {.decay = 0.5}};

  std::vector<Content> contents() { return {{"net", net}, {"opt", opt}, {"average", average}}; }
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      opt.zero_grad();
      mse_loss(net(randn({4, 3})), ones({4, 3})).backward();
      opt.step();
      average.update();
    }
  }
};

Names names_of(const TensorMap& tensors) {
  Names names;
  for (const auto& [name, _] : tensors) names.push_back(name);
  return names;
}

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("tied: a saved training has the weight and its state once, continues bit-equal, and stays tied") {
  const TempFolder f;
  manual_seed(3);
  Run whole;
  whole.train(7);
  manual_seed(3);
  Run begun;
  SavedTraining first(f / "c", begun.contents());
  begun.train(3);
  first.save(3);
  const Checkpoint file = load_checkpoint(f / "c");
  CHECK(names_of(file.weights) == Names{"net.in.weight", "net.in.bias", "net.out.bias"});
  CHECK_FALSE(file.optimizer.find("opt.3.step"));  // three parameters
  CHECK(file.optimizer.find("average.2.average"));
  CHECK_FALSE(file.optimizer.find("average.3.average"));

  manual_seed(4);
  Run resumed;
  CHECK(SavedTraining(f / "c", resumed.contents()).done() == 3);
  CHECK(same(resumed.net.in.weight, resumed.net.out.weight));
  resumed.train(4);
  CHECK(same(resumed.net.in.weight, resumed.net.out.weight));
  CHECK(values(resumed.net.out.weight) == values(whole.net.in.weight));
  CHECK(values(resumed.net.out.bias) == values(whole.net.out.bias));
  CHECK(values(resumed.average.averages()[0]) == values(whole.average.averages()[0]));
}

TEST_CASE("tied: a checkpoint with the weight under its other name loads, and into a file with either name") {
  const TempFolder f;
  Tied net;
  optim::AdamW opt(net.parameters());
  SavedTraining(f / "c", {{"net", net}}).save(1);
  TiedBackwards backwards;
  SavedTraining(f / "c", {{"net", backwards}});
  CHECK(same(backwards.in.weight, backwards.out.weight));
  CHECK(values(backwards.in.weight) == values(net.in.weight));
  CHECK(values(backwards.in.bias) == values(net.in.bias));
  CHECK(values(backwards.out.bias) == values(net.out.bias));

  save_model(f / "m", net);
  const TensorMap state = load_model_file(f / "m").state;
  CHECK(names_of(state) == Names{"in.weight", "in.bias", "out.bias"});
  TiedBackwards other;
  other.load_state_dict(state);
  CHECK(values(other.out.weight) == values(net.in.weight));
  Tied back;
  save_model(f / "m", other);
  back.load_state_dict(load_model_file(f / "m").state);
  CHECK(values(back.in.weight) == values(net.in.weight));
  CHECK(same(back.in.weight, back.out.weight));
}

TEST_CASE("tied: a file with other ties is refused, and changes nothing") {
  const TempFolder f;
  Untied untied;
  Tied tied;
  const std::vector<float> before = values(tied.in.weight), of_untied = values(untied.out.weight);
  SavedTraining(f / "untied", {{"net", untied}}).save(1);
  CHECK_THROWS_WITH(SavedTraining(f / "untied", {{"net", tied}}),
                    Contains("tied        out.weight is the tensor in.weight, given other values"));
  CHECK(values(tied.in.weight) == before);
  SavedTraining(f / "tied", {{"net", tied}}).save(1);
  CHECK_THROWS_WITH(SavedTraining(f / "tied", {{"net", untied}}), Contains("missing     out.weight [3, 3]"));
  CHECK(values(untied.out.weight) == of_untied);
}

TEST_CASE("tied: clone and replace after a checkpoint was loaded keep the ties, in the next file, too") {
  const TempFolder f;
  Run run;
  run.train(1);
  SavedTraining(f / "c", run.contents()).save(1);
  Run loaded;
  SavedTraining(f / "c", loaded.contents());
  Tied copy = nn::clone(loaded.net);
  CHECK(same(copy.in.weight, copy.out.weight));
  CHECK_FALSE(same(copy.in.weight, loaded.net.in.weight));
  CHECK(values(copy.in.weight) == values(run.net.in.weight));
  copy.replace("in", nn::Linear(3, 3));
  CHECK(same(copy.in.weight, copy.out.weight));
  optim::AdamW opt(copy.parameters());
  SavedTraining(f / "copy", copy, opt).save(1);
  CHECK(names_of(load_checkpoint(f / "copy").weights) == Names{"in.weight", "in.bias", "out.bias"});
  Tied again;
  optim::AdamW opt_of_again(again.parameters());
  SavedTraining(f / "copy", again, opt_of_again);
  CHECK(values(again.out.weight) == values(copy.in.weight));
}

TEST_CASE("tied: an optimizer's state of a tied model belongs to the listed parameters, and is restored") {
  manual_seed(3);
  Run a;
  a.train(2);
  const TensorMap state = a.opt.state_dict();
  CHECK(names_of(state) == Names{"group.0.lr", "0.step", "0.exp_avg", "0.exp_avg_sq", "1.step", "1.exp_avg",
                                 "1.exp_avg_sq", "2.step", "2.exp_avg", "2.exp_avg_sq"});
  Run b;
  b.net.load_state_dict(a.net.state_dict());
  b.opt.load_state_dict(state);
  manual_seed(5);
  a.train(2);
  manual_seed(5);
  b.train(2);
  CHECK(values(b.net.out.weight) == values(a.net.in.weight));
  Untied untied;
  optim::AdamW of_untied(untied.parameters());
  CHECK_THROWS_WITH(of_untied.load_state_dict(state),
                    Contains("adamw: the state '2.exp_avg' is f32 [3], expected f32 [3, 3]"));
}

TEST_CASE("tied: models that share a part are saved with it, and share it when they are loaded") {
  const TempFolder f;
  struct Both {
    nn::Linear trunk{2, 2};
    nn::Sequential actor{nn::shared(trunk), nn::Linear(2, 3)}, critic{nn::shared(trunk), nn::Linear(2, 1)};
    std::vector<Tensor> parameters() const {
      std::vector<Tensor> all = actor.parameters();
      for (const Tensor& p : critic.parameters()) all.push_back(p);
      return all;
    }
    optim::AdamW opt{parameters()};
    std::vector<Content> contents() { return {{"actor", actor}, {"critic", critic}, {"opt", opt}}; }
    void train(int steps) {
      for (int i = 0; i < steps; ++i) {
        opt.zero_grad();
        const Tensor x = randn({4, 2});
        (actor(x).square().mean() + critic(x).mean()).backward();
        opt.step();
      }
    }
  };
  manual_seed(3);
  Both whole;
  whole.train(5);
  manual_seed(3);
  Both begun;
  begun.train(2);
  SavedTraining(f / "c", begun.contents()).save(2);
  manual_seed(4);
  Both resumed;
  SavedTraining(f / "c", resumed.contents());
  resumed.train(3);
  CHECK(same(resumed.actor.parameters()[0], resumed.critic.parameters()[0]));
  for (size_t i = 0; i < 8; ++i) CHECK(values(resumed.parameters()[i]) == values(whole.parameters()[i]));
}

TEST_CASE("tied: load_model ties the head of a tied gpt to its table again") {
  const TempFolder f;
  nn::Gpt gpt({.vocab = 7, .context = 4, .tied = true, .transformer = {.width = 4, .depth = 1, .heads = 1}});
  save_model(f / "gpt", gpt);
  CHECK_FALSE(load_model_file(f / "gpt").state.find("head.weight"));
  const auto loaded = load_model(f / "gpt");
  CHECK(loaded->parameter_count() == gpt.parameter_count());
  const Tensor ids = from_vector(std::vector<int64_t>{1, 2, 3}, {1, 3});
  gpt.eval();
  CHECK(values(detach((*loaded)(ids))) == values(detach(gpt(ids))));
  fill(*loaded->find_parameter("token.weight"), 0);  // a head of zeros gives these logits
  CHECK(values(detach((*loaded)(ids))) == std::vector<float>(21, 0));
}

TEST_CASE("save_model refuses a model whose weights are not the stored tensors") {
  struct Triple : nn::Parametrisation {
    Tensor operator()(const Tensor& x) const override { return x * 3.0; }
  };
  const TempFolder f;
  nn::Gpt gpt({.vocab = 7, .context = 4, .transformer = {.width = 4, .depth = 1, .heads = 1}});
  gpt.find_parameter("head.weight")->parametrize(std::make_shared<Triple>());
  CHECK_THROWS_WITH(save_model(f / "gpt", gpt), Contains("'head.weight' has a parametrisation that was added"));
  CHECK_FALSE(std::filesystem::exists(f / "gpt"));
}
