// Trainings of models: proofs, audits, ranks, and the loss at the first step.
#include "autograd/methods.h"
#include "distributed/parallel/tensor_parallel.h"
#include "distributed/world.h"
#include "tests/model_cases/verbs.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::test;
using distributed::Group, distributed::run_ranks;
using streams::Form;

namespace {

TensorMap gradients_of(const nn::Module& m) {
  TensorMap all;
  for (const nn::NamedParameter& p : m.named_parameters()) all.add(p.name, p.tensor.grad());
  return all;
}

// Throws, because ranks are threads, in which a CHECK is not possible.
void check_gradients(const TensorMap& found, const TensorMap& expected) {
  double scale = 1;
  for (const auto& [name, g] : expected) scale = std::max(scale, nn::largest(g));
  for (const auto& [name, g] : expected) {
    const double off = nn::largest(found.at(name) - g);
    check(off <= kRounding * scale, "the gradient of ", name, " is ", off, " off");
  }
}

}  // namespace

TEST_CASE("models: all forms train as one, and negative controls do not") {
  each_model(Promise::prove, [](const ModelCase& c) {
    const equivalence::ProofResult r = proof(c);
    const bool promised = !c.refused.contains(Promise::forms);
    CHECK(r.equivalent() == promised);
    if (!promised) return;
    CHECK(r.runs.size() > r.options.forms.size());  // negative controls, too
    const auto centred = [](const equivalence::RunResult& run) {
      return run.negative_control == std::string("embeddings centred");
    };
    if (!c.model.flag("tied"))
      CHECK(std::ranges::count_if(r.runs, centred) == c.model.transformer().connection.reads_embeddings);
    for (const equivalence::RunResult& run : r.runs) {
      INFO(run.form << ' ' << run.negative_control << ": " << run.reason);
      CHECK(run.as_expected);
    }
  });
}

TEST_CASE("models: the grid of every arrangement is as theory says") {
  for (const ModelCase& c : model_cases()) {
    const nn::Arrangement& a = c.model.transformer().connection;
    if (c.name != text("gpt, ", a.name)) continue;
    const equivalence::TableResult r = grid(a);
    INFO(c.name << ": " << reports::closing(equivalence::document_of({&r, 1})));
    CHECK(r.as_expected());
  }
}

TEST_CASE("models: an audit finds the directions that the loss does not see") {
  each_model(Promise::audit, [](const ModelCase& c) {
    const equivalence::AuditResult r = equivalence::audit(small_training(c));
    CHECK((r.verdict == equivalence::Verdict::equivalent) == !c.refused.contains(Promise::forms));
    CHECK(r.directions() > 0);
  });
}

TEST_CASE("models: ranks that share the rows of a batch have the gradients of one process") {
  for (const ModelCase& c : model_cases()) {
    INFO(c.name);
    const auto [inputs, targets] = batch_of(c);
    const training::Examples batch{inputs, targets};
    const auto differentiated = [&](Group* group) {
      const std::unique_ptr<nn::Module> model = drawn(c, {.form = forms_of(c).back()});
      model->eval();
      training::differentiate(*model, training::cross_entropy_of, batch, 1, group);
      return gradients_of(*model);
    };
    const TensorMap expected = differentiated(nullptr);
    CHECK_NOTHROW(run_ranks(2, [&](Group& g) { check_gradients(differentiated(&g), expected); }));
  }
}

TEST_CASE("models: ranks that share heads and hidden units have the logits and gradients of one process") {
  each_model(Promise::tensor_parallel, [](const ModelCase& c) {
    const Batch b = batch_of(c);
    const training::Examples batch{b.inputs, b.targets};
    const streams::StreamOptions stream{.form = forms_of(c).back()};
    const std::unique_ptr<nn::Module> whole = drawn(c, stream);
    manual_seed(4);
    const double loss = training::differentiate(*whole, training::cross_entropy_of, batch);
    const TensorMap weights = whole->state_dict(), expected = gradients_of(*whole);
    const nn::TransformerOptions t = c.model.complete().transformer();
    run_ranks(2, [&](Group& g) {
      training::ModelOptions of_rank = c.model;
      of_rank.transformer() = parallel::part_of(t, g);
      const std::unique_ptr<nn::Module> part = of_rank.make(stream);
      part->to(DType::f64);
      // Ranks share the rows between the layers, too, if they divide them and no mask is drawn there.
      const bool rows =
          c.model.row().input == training::Input::text && t.branch.dropout == 0 && t.branch.stochastic_depth == 0;
      parallel::TensorParallel split(*part, t, g, {.rows = rows});
      split.load(weights);
      manual_seed(4);
      const double found = training::cross_entropy_of(*part, batch).item();
      check(std::abs(found - loss) <= kRounding * loss, "the loss is ", found, ", expected ", loss);
      manual_seed(4);
      backward(training::cross_entropy_of(*part, batch));
      check_gradients(split.whole(gradients_of(*part)), expected);
    });
  });
}

TEST_CASE("models: the loss at step 1 is about ln(classes), whatever the initialisation") {
  const NoGrad no_grad;
  constexpr int64_t kOutputs = 1000;
  for (const ModelCase& c : model_cases())
    for (const char* initialisation : nn::kInitialisationNames) {
      training::ModelOptions m = c.model;
      if (!m.transformer().final_norm || m.stream().form == Form::none) continue;  // nothing limits the logits
      INFO(c.name << ", " << initialisation);
      m.transformer().width = 64, m.transformer().head_width = 16, m.transformer().mlp_width = 256;
      m.fit({{"image", 14}, {"classes", kOutputs}, {"vocab", kOutputs}, {"context", 8}});
      m.set({"initialisation", std::string(initialisation)});
      manual_seed(1);
      const std::unique_ptr<nn::Module> model = m.make();
      const Tensor inputs = m.inputs(m.row().input == training::Input::images ? 64 : 16, 5);
      const Tensor logits = (*model)(is_floating(inputs.dtype()) ? inputs.to(DType::f32) : inputs);
      Generator g{2, 0};
      const Tensor targets = randint(0, kOutputs, {logits.numel() / kOutputs}, kCpu, g);
      // ResiDual's head reads the sum of two normalised rows, so its logits have twice the variance.
      const double allowed = m.transformer().connection == nn::kResiDual ? 1 : 0.35;
      const double loss = cross_entropy(reshape(logits, {-1, kOutputs}), targets).item();
      CHECK(loss < std::log(kOutputs) + allowed);
      CHECK(loss > std::log(kOutputs) - 0.1);
    }
}
