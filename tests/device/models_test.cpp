// Whole models on a device compared with the CPU: three training steps, saving, generation and comparison.
#include <optional>
#include <thread>

#include "autograd/fused/linear_cross_entropy.h"
#include "autograd/grad_mode.h"
#include "equivalence/verify/verify.h"
#include "io/checkpoint.h"
#include "nn/generate.h"
#include "nn/recurrent/recurrent.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/ema.h"
#include "streams/transformer.h"
#include "tests/model_cases/model_case.h"
#include "tests/support/device.h"
#include "tests/support/temp_folder.h"
#include "training/model_options.h"

using namespace isonorm;
using streams::Form;
using test::kCuda, test::kCuda1;

namespace {

const nn::TransformerOptions kSmall{.width = 24, .depth = 2, .heads = 2};

// A model with its own batch, all on the CPU.
struct Task {
  std::unique_ptr<nn::Module> model;
  Tensor x, y;
};
using Make = std::function<Task()>;

Make gpt(nn::TransformerOptions t, streams::StreamOptions stream = {}, bool tied = false) {
  return [=] {
    manual_seed(3);
    Generator g{.seed = 5};
    return Task{std::make_unique<nn::Gpt>(
                    streams::make<nn::Gpt>({.vocab = 31, .context = 16, .tied = tied, .transformer = t}, stream)),
                randint(0, 31, {4, 16}, kCpu, g), randint(0, 31, {4, 16}, kCpu, g)};
  };
}
Make vit(nn::TransformerOptions t, streams::StreamOptions stream = {}) {
  return [=] {
    manual_seed(3);
    Generator g{.seed = 5};
    return Task{std::make_unique<nn::Vit>(streams::make<nn::Vit>({.image = 12, .patch = 4, .transformer = t}, stream)),
                rand({5, 12, 12, 1}, {}, g), randint(0, 10, {5}, kCpu, g)};
  };
}

Tensor plain_loss(nn::Module& m, const Tensor& x, const Tensor& y) { return cross_entropy(m(x), y); }
// For a GPT: the fused op of head and loss.
Tensor fused_loss(nn::Module& m, const Tensor& x, const Tensor& y) {
  nn::Gpt& model = static_cast<nn::Gpt&>(m);
  const auto [w, b] = model.head();
  const Tensor loss = linear_cross_entropy(model.features(x), w, b, y);
  CHECK(loss.dtype() == w.dtype());
  return loss;
}

// One step on a device. Returns the loss.
double step(const Task& task, optim::Optimizer& opt, Device at) {
  const Tensor loss = plain_loss(*task.model, to(task.x, at), to(task.y, at));
  opt.zero_grad();
  backward(loss);
  opt.step();
  return loss.item();
}

struct How {
  DType dtype = DType::f64;
  std::function<Tensor(nn::Module&, const Tensor&, const Tensor&)> loss = plain_loss;
  // Limits the gradients. Returns the factor that the optimizer applies to them.
  std::function<double(const std::vector<Tensor>&)> limit = [](const auto&) { return 1.0; };
  bool move_last = false;  // moves the model after the optimizer is made
  bool average = false;
};

struct Outcome {
  std::vector<double> losses;
  std::vector<nn::NamedParameter> weights;
};

Outcome train(const Make& make, const How& how, Device device) {
  const Task task = make();
  nn::Module& model = *task.model;
  model.to(how.dtype);
  if (!how.move_last) model.to(device);
  optim::AdamW opt(model.parameters(), {.lr = 0.01});
  model.to(device);
  std::optional<optim::Ema> ema;
  if (how.average) ema.emplace(model.parameters());
  const Tensor x = to(is_floating(task.x.dtype()) ? task.x.to(how.dtype) : task.x, device), y = to(task.y, device);
  Outcome o;
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = how.loss(model, x, y);
    opt.zero_grad();
    backward(loss);
    opt.step(how.limit(model.parameters()));
    if (ema) ema->update();
    o.losses.push_back(loss.item());
  }
  if (ema) ema->apply();
  o.weights = model.named_parameters();
  return o;
}

// Compares three steps on the CPU and on cuda:0. In f64 only rounding differs, and AdamW's eps is large compared with
// the rounding error of a gradient that is 0. In f32 and bf16 such a gradient causes an arbitrary step, so only losses
// are compared.
constexpr double kInBf16 = 0.03;
void compare(const std::string& name, const Make& make, const How& how = {}, std::optional<double> losses = {}) {
  INFO(name << ", " << text(how.dtype));
  const Outcome here = train(make, how, kCpu), there = train(make, how, kCuda);
  const double bound = losses.value_or(how.dtype == DType::f64 ? 1e-10 : how.dtype == DType::f32 ? 1e-4 : kInBf16);
  for (size_t i = 0; i < here.losses.size(); ++i) CHECK(there.losses[i] == Approx(here.losses[i]).epsilon(bound));
  CHECK(here.losses.back() != here.losses.front());
  for (size_t i = 0; i < here.weights.size(); ++i) {
    INFO(here.weights[i].name);
    CHECK(there.weights[i].tensor.device() == kCuda);
    const bool is_blind = here.weights[i].blind_end - here.weights[i].blind_begin == here.weights[i].tensor.numel();
    if (how.dtype == DType::f64 && !is_blind) check_close(there.weights[i].tensor, here.weights[i].tensor, 1e-8);
  }
}

}  // namespace

TEST_CASE("models of every row train on a device as on the CPU, in all forms by turns") {
  size_t turn = 0;
  for (const test::ModelCase& c : test::model_cases()) {
    const std::vector<Form> forms = test::forms_of(c);
    const Form form = turn % 4 == 0 ? c.model.stream().form : forms[turn % 4 % forms.size()];
    ++turn;
    compare(text(c.name, ", ", name_of(form)), [&] {
      manual_seed(3);
      const test::Batch batch = test::batch_of(c);
      return Task{c.model.make({.form = form}), batch.inputs, batch.targets};
    });
  }
}

TEST_CASE("models of every form and storage train on a device as on the CPU") {
  for (Form form : streams::all_forms())
    for (streams::Stored storage : {streams::Stored::raw, streams::Stored::mapped}) {
      const std::string name = text(name_of(form), storage == streams::Stored::raw ? " raw" : " mapped");
      nn::TransformerOptions t = kSmall;
      streams::StreamOptions s{.form = form, .storage = storage};
      compare("vit " + name, vit(t, s));
      if (storage == streams::Stored::raw) t.affine = true, s.centre_readers = row_of(form).layer_norm_model();
      compare("gpt affine tied " + name, gpt(t, s, true));
      t.branch.stochastic_depth = 0.2;
      compare("vit depth " + name, vit(t, s));
    }
}

TEST_CASE("models of recurrent layers train on a device as on the CPU") {
  // One class for each step; the last step of every example is padding.
  const auto loss = [](nn::Module& m, const Tensor& x, const Tensor& y) {
    const Tensor mask = ones({x.size(0), x.size(1)}, x.options());
    fill(detached::narrow(mask, 1, x.size(1) - 1, 1), 0);
    const Tensor rows = static_cast<nn::Recurrent&>(m)(x, {.mask = mask}).output;
    return cross_entropy(reshape(rows, {y.numel(), rows.size(2)}), y);
  };
  for (const bool lstm : {false, true})
    for (NormKind norm : {NormKind::none, NormKind::layer, NormKind::rms}) {
      const auto make = [=] {
        manual_seed(3);
        Generator g{.seed = 5};
        const nn::RecurrentOptions o{.inputs = 3, .hidden = 6, .layers = 2, .bidirectional = true, .norm = norm};
        std::unique_ptr<nn::Module> layer = std::make_unique<nn::Gru>(o);
        if (lstm) layer = std::make_unique<nn::Lstm>(o);
        return Task{std::move(layer), randn({2, 5, 3}, {DType::f64}, g), randint(0, 12, {10}, kCpu, g)};
      };
      compare(text(lstm ? "lstm " : "gru ", name_of(norm)), make, {.loss = loss});
    }
}

TEST_CASE("models train on a device in f32 and bf16") {
  for (Form form : streams::all_forms())
    for (DType dtype : {DType::f32, DType::bf16}) {
      compare(text("gpt ", name_of(form)), gpt(kSmall, {.form = form}), {.dtype = dtype});
      compare(text("vit ", name_of(form)), vit(kSmall, {.form = form}), {.dtype = dtype});
    }
}

TEST_CASE("models train on a device in mixed precision: bf16 products, f32 parameters") {
  for (Form form : streams::all_forms())
    for (nn::Precision stream : {nn::Precision::full, nn::Precision::bf16}) {
      nn::TransformerOptions t = kSmall;
      streams::StreamOptions s{.form = form};
      t.precision = {nn::Precision::bf16, stream};
      const std::string name = text(name_of(form), ", stream ", name_of(stream));
      compare("vit " + name, vit(t, s), {.dtype = DType::f32}, kInBf16);
      t.affine = true, s.centre_readers = row_of(form).layer_norm_model();
      t.positions = nn::Positions::rotary, t.activation = nn::Activation::swiglu;
      compare("gpt " + name, gpt(t, s, true), {.dtype = DType::f32}, kInBf16);
      compare("gpt fused loss " + name, gpt(t, s), {.dtype = DType::f32, .loss = fused_loss}, kInBf16);
    }
}

TEST_CASE("losses, limits, averages and modes work on a device") {
  const Make g = gpt(kSmall), v = vit(kSmall);
  for (DType dtype : {DType::f64, DType::f32, DType::bf16})
    compare("fused loss", g, {.dtype = dtype, .loss = fused_loss});
  const auto under = [](auto guard) {
    return [guard](nn::Module& m, const Tensor& x, const Tensor& y) {
      const auto on = guard();
      return plain_loss(m, x, y);
    };
  };
  compare("reference ops", v, {.loss = under([] { return std::make_unique<UseReference>(); })});
  compare("anomaly mode", v, {.loss = under([] { return std::make_unique<AnomalyMode>(); })});
  compare("activations in bf16", g,
          {.dtype = DType::f32, .loss = under([] { return std::make_unique<SaveActivations>(DType::bf16); })});
  using Parameters = std::vector<Tensor>;
  compare("factor", v, {.limit = [](const Parameters& p) { return optim::clip_factor(optim::grad_norm(p), 0.5); }});
  compare("norm", v, {.limit = [](const Parameters& p) { return optim::clip_grad_norm(p, 0.5), 1.0; }});
  compare("value", v, {.limit = [](const Parameters& p) { return optim::clip_grad_value(p, 0.01), 1.0; }});
  compare("l2", v, {.limit = [](const Parameters& p) { return optim::add_l2(p, 0.01), 1.0; }});
  compare("optimizer before the move", v, {.move_last = true});
  compare("average", v, {.average = true});
}

TEST_CASE("a training resumes on another device from a checkpoint with the same bits", "[two devices]") {
  const TempFolder f;
  for (Device from : {kCpu, kCuda})
    for (Device there : {kCpu, kCuda, kCuda1}) {
      INFO(text(from, " to ", there));
      const Task a = vit(kSmall, {.form = Form::crms_norm})(), b = vit(kSmall, {.form = Form::crms_norm})();
      a.model->to(from), b.model->to(there);
      optim::AdamW mine(a.model->parameters()), other(b.model->parameters());
      for (int i = 0; i < 2; ++i) step(a, mine, from);
      save_checkpoint(f / "c", {a.model->state_dict(), mine.state_dict(), {}});
      const Checkpoint c = load_checkpoint(f / "c");
      b.model->load_state_dict(c.weights);
      other.load_state_dict(c.optimizer);
      for (const auto& [name, tensor] : a.model->state_dict())
        CHECK(same_bytes(b.model->state_dict().at(name), tensor));
      for (const auto& [name, tensor] : mine.state_dict()) CHECK(same_bytes(other.state_dict().at(name), tensor));
      CHECK(step(b, other, there) == Approx(step(a, mine, from)).epsilon(1e-5));
      CHECK(b.model->parameters()[0].device() == there);
    }
}

TEST_CASE("a model moves, is cloned and prepared for inference on its device", "[two devices]") {
  const NoGrad no_grad;
  const Task task = vit(kSmall, {.form = Form::crms_isometric})();
  nn::Vit& model = static_cast<nn::Vit&>(*task.model);
  const Tensor expected = model(task.x), x = to(task.x, kCuda);
  model.prepare_inference();
  model.to(kCuda);  // weights that were packed for the CPU must not be used
  check_close(model(x), expected, 1e-5);
  model.prepare_inference();
  check_close(model(x), expected, 1e-5);
  const nn::Vit copy = nn::clone(model);
  for (const Tensor& p : copy.parameters()) CHECK(p.device() == kCuda);
  check_close(nn::clone(model)(x), expected, 1e-5);
  model.to(kCuda1);
  check_close(model(to(x, kCuda1)), expected, 1e-5);
  model.to(kCpu);
  CHECK(same_bytes(model(task.x), expected));
}

TEST_CASE("an optimizer's state follows a model that moves between steps", "[two devices]") {
  const auto losses = [](std::initializer_list<Device> places) {
    Task task = vit(kSmall)();
    task.model->to(DType::f64), task.x = task.x.to(DType::f64);
    optim::AdamW opt(task.model->parameters(), {.lr = 0.01});
    std::vector<double> all;
    for (Device at : places) {
      task.model->to(at);
      all.push_back(step(task, opt, at));
    }
    return all;
  };
  const std::vector<double> here = losses({kCpu, kCpu, kCpu, kCpu}), moved = losses({kCpu, kCuda, kCuda1, kCpu});
  for (size_t i = 0; i < here.size(); ++i) CHECK(moved[i] == Approx(here[i]).epsilon(1e-10));
}

TEST_CASE("a text is continued wherever model and prompt lie", "[two devices]") {
  for (nn::Positions positions : {nn::Positions::learned, nn::Positions::none})
    for (double temperature : {0.0, 1.0}) {
      nn::TransformerOptions t = kSmall;
      t.positions = positions;
      const Task task = gpt(t)();
      nn::Gpt& model = static_cast<nn::Gpt&>(*task.model);
      model.to(DType::f64);
      model.eval();
      std::vector<int64_t> first;
      for (Device at : {kCpu, kCuda})
        for (Device prompt_at : {kCpu, kCuda, kCuda1}) {
          model.to(at);
          Generator g{.seed = 9};
          const Tensor prompt = to(tensor<int64_t>({1, 2, 3}), prompt_at);
          const Tensor ids = nn::generate(model, prompt, {.length = 20, .temperature = temperature, .top_k = 5}, g);
          CHECK(ids.device() == prompt_at);
          if (first.empty()) first = ids.to_vector<int64_t>();
          CHECK(ids.to_vector<int64_t>() == first);
        }
    }
}

TEST_CASE("two host threads train two models on one device") {
  std::vector<double> losses[2];
  std::thread other([&] { losses[0] = train(gpt(kSmall), {}, kCuda).losses; });
  losses[1] = train(gpt(kSmall), {}, kCuda).losses;
  other.join();
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("files are compared on the inputs' device, wherever the weights are") {
  const Task task = vit(kSmall, {.form = Form::rms_norm})();
  const Metadata description = training::describe(*task.model);
  const Tensor x = task.x.to(DType::f64);
  const auto agreement = [&](Device weights, Device inputs) {
    task.model->to(weights);
    const TensorMap state = task.model->state_dict();
    return equivalence::compare_models(description, state, description, state, to(x, inputs)).control;
  };
  const double here = agreement(kCpu, kCpu);
  for (Device weights : {kCpu, kCuda})
    for (Device inputs : {kCpu, kCuda}) CHECK(agreement(weights, inputs) == Approx(here).epsilon(0.1));
}
