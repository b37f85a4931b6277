#include <algorithm>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "equivalence/causes/update_cause.h"
#include "equivalence/compare/compare.h"
#include "equivalence/compare/found.h"
#include "equivalence/compare/own_training.h"
#include "equivalence/convert/checkpoint_facts.h"
#include "equivalence/lockstep/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "nn/norm.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

// Gains and biases of the norms in `module`, however deep.
std::vector<Tensor> gains(const nn::Module& module) {
  std::vector<Tensor> found;
  for (const auto& [_, m] : module.named_modules())
    if (dynamic_cast<const nn::Norm*>(m))
      for (const Tensor& p : m->parameters()) found.push_back(p);
  return found;
}

// A, trained with the gains of its norms left as they are.
class Frozen : public OwnTraining {
 public:
  using OwnTraining::OwnTraining;
  void differentiate(const training::Examples& batch) override {
    OwnTraining::differentiate(batch);
    for (const Tensor& p : gains(model())) set_grad(p, {});
  }
};

// A, trained on another batch at one step.
class Misled : public OwnTraining {
 public:
  Misled(nn::Module& model, std::vector<streams::NamedParameter> parameters, const Objective& loss, uint64_t seed,
         training::Examples other)
      : OwnTraining(model, std::move(parameters), loss, seed), other_(std::move(other)) {}
  void differentiate(const training::Examples& batch) override {
    OwnTraining::differentiate(step_++ == kNegativeSteps / 2 ? otherwise(batch) : batch);
  }

 private:
  training::Examples otherwise(const training::Examples& batch) const {
    if (!std::ranges::equal(batch.tensors(), other_.tensors(), same_bytes)) return other_;
    return {batch.inputs, batch.targets.rank() > 0 ? flip(batch.targets, {0}) : batch.targets, batch.more};
  }

  training::Examples other_;
  int step_ = 0;
};

class Trajectories {
 public:
  Trajectories(const MakeModel& make_a, const MakeModel& make_b, const ParameterMap& map, const Objective& loss,
               const MakeOptimizer& make_optimizer, const Batches& batches, const CompareOptions& o)
      : make_a_(make_a),
        make_b_(make_b),
        map_(map),
        loss_(loss),
        make_optimizer_(make_optimizer),
        batches_(batches),
        o_(o),
        a_(make_a()),
        b_(make_b()),
        found_(partners(*a_, *b_, map, &result_.reason)) {}

  Comparison run() {
    if (!result_.reason.empty()) return result_;
    const DType dtype = dtype_of(found_);
    carry_over(found_);
    RunResult run;
    run.may_be_identical = o_.may_be_identical;
    std::vector<RunResult> controls(static_cast<size_t>(o_.controls)), wrong = train_wrong();
    Lockstep all;
    RunResult reference;
    add<OwnTraining>(all, reference, false);
    add_controls(all, controls);
    add(all, std::make_unique<OwnTraining>(*b_, found_, loss_, o_.seed), run, false);
    for (int step = 0; step < o_.steps; ++step) all.step(batches_(step), 0);

    Comparison result = found(run, controls, wrong, all, dtype);
    if (result.verdict == Verdict::different && result.first) explain(result);
    return result;
  }

 private:
  void add(Lockstep& all, std::unique_ptr<OwnTraining> training, RunResult& record, bool control) {
    training->train_with(make_optimizer_(training->model().parameters()), o_.clip);
    all.add(std::move(training), record, control);
  }

  // One more training of A, from the parameters that it began with.
  template <class T, class... More> T& add(Lockstep& all, RunResult& record, bool control, More&&... more) {
    models_.push_back(make_a_());
    nn::Module& copy = *models_.back();
    copy.load_state_dict(a_->state_dict());
    std::string ignored;
    auto training =
        std::make_unique<T>(copy, partners(copy, *b_, map_, &ignored).a, loss_, o_.seed, std::forward<More>(more)...);
    T& added = *training;
    add(all, std::move(training), record, control);
    return added;
  }

  void add_controls(Lockstep& all, std::vector<RunResult>& controls) {
    for (size_t c = 0; c < controls.size(); ++c)
      move_by_one_ulp(add<OwnTraining>(all, controls[c], true).model(), c + 1);
  }

  // What differs at the first step that does: looked at with new models, trained up to there.
  void explain(Comparison& result) {
    const int step = result.first->step;
    const bool update = result.first->quantity == std::string_view("weights");
    models_.push_back(make_b_());
    nn::Module& b = *models_.back();
    Lockstep before;
    RunResult reference, run;
    nn::Module& a = add<OwnTraining>(before, reference, false).model();
    std::string ignored;
    const Partners now = partners(a, b, map_, &ignored);
    carry_over(now);
    if (update) add(before, std::make_unique<OwnTraining>(b, now, loss_, o_.seed), run, false);
    for (int t = 0; t + 1 < step; ++t) before.step(batches_(t), 0);
    const training::Examples batch = batches_(step - 1);
    Explained explained;
    if (!update)
      explained = explain_at(a, b, now, loss_, batch, o_, kCauses * step * (2 + o_.controls));
    else if (o_.clip == 0)
      explained =
          explain_update(names_of(now), differing(result), see_update(before, now, batch), acts(now), make_optimizer_);
    result.place = explained.place, result.cause = explained.cause, result.tried = explained.tried;
  }

  static std::vector<std::string> names_of(const Partners& p) {
    std::vector<std::string> names;
    for (const streams::NamedParameter& q : p.a) names.push_back(q.name);
    return names;
  }
  // Whether some map is not the identity.
  static bool acts(const Partners& p) {
    return std::ranges::any_of(p.routes, [](const Route& r) { return !r.legs.empty(); });
  }
  // Names of A's parameters whose weights differ.
  static std::vector<std::string> differing(const Comparison& result) {
    std::vector<std::string> names;
    for (const DifferingTensor& t : result.first->tensors)
      if (t.quantity == "weight") names.push_back(t.place.tensor);
    return names;
  }

  // One more step of A and B.
  static SeenUpdate see_update(Lockstep& both, const Partners& now, const training::Examples& batch) {
    SeenUpdate seen;
    for (auto& [all, parameters, member] :
         {std::tie(seen.a, now.a, both.members()[0]), std::tie(seen.b, now.b, both.members()[1])}) {
      member.training->differentiate(batch);
      for (const streams::NamedParameter& p : parameters) {
        const Tensor& g = p.tensor.grad();
        all.push_back({detached::clone(p.tensor), g.defined() ? detached::clone(g) : zeros_like(p.tensor), {}});
      }
      member.training->update(0);
      for (size_t i = 0; i < all.size(); ++i) all[i].after = detached::clone(parameters[i].tensor);
    }
    return seen;
  }

  // With controls, which tell what among the gradients is rounding noise: a wrong training does not reach far in that.
  std::vector<RunResult> train_wrong() {
    std::vector<RunResult> controls(static_cast<size_t>(o_.controls));
    std::vector<RunResult> wrong(gains(*a_).empty() ? 1 : 2);
    RunResult reference;
    Lockstep all;
    add<OwnTraining>(all, reference, false);
    add_controls(all, controls);
    const int exchanged = kNegativeSteps / 2;
    add<Misled>(all, wrong[0], false, batches_((exchanged + 1) % o_.steps));
    if (wrong.size() > 1) add<Frozen>(all, wrong[1], false);
    for (int step = 0; step < kNegativeSteps; ++step) all.step(batches_(step % o_.steps), 0);
    return wrong;
  }

  const MakeModel &make_a_, &make_b_;
  const ParameterMap& map_;
  const Objective& loss_;
  const MakeOptimizer& make_optimizer_;
  const Batches& batches_;
  const CompareOptions& o_;
  Comparison result_;
  const std::unique_ptr<nn::Module> a_, b_;
  const Partners found_;
  std::vector<std::unique_ptr<nn::Module>> models_;
};

}  // namespace

Comparison compare_trajectories(const MakeModel& make_a, const MakeModel& make_b, const ParameterMap& map,
                                const Objective& loss, const MakeOptimizer& make_optimizer, const Batches& batches,
                                const CompareOptions& o) {
  check(o.steps > 0 && o.controls > 0, "compare_trajectories: ", o.steps, " steps and ", o.controls,
        " controls, expected at least 1 of each");
  return Trajectories(make_a, make_b, map, loss, make_optimizer, batches, o).run();
}

}  // namespace isonorm::equivalence
