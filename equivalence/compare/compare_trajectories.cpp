#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "core/printed.h"
#include "core/view.h"
#include "equivalence/causes/cause.h"
#include "equivalence/compare/inputs_and_buffers.h"
#include "equivalence/compare/compare.h"
#include "equivalence/compare/points.h"
#include "equivalence/compare/own_training.h"
#include "equivalence/compare/own_negative_controls.h"
#include "equivalence/convert/state.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "optim/sgd.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

std::unique_ptr<nn::Module> made(const MakeModel& make, Which which) {
  std::unique_ptr<nn::Module> model;
  with_model_named(which, [&] { model = make(); });
  check(model != nullptr, "compare_trajectories: ", which == Which::first ? "make_a" : "make_b", " gave no model");
  return model;
}

bool are_equal(const training::Examples& a, const training::Examples& b) {
  const auto defined = [](const training::Examples& batch) {
    std::vector<Tensor> all = batch.tensors();
    std::erase_if(all, [](const Tensor& x) { return !x.defined(); });
    return all;
  };
  return std::ranges::equal(defined(a), defined(b), same_bytes);
}

// "; the optimizer of the second model holds 2 of its 8 parameters"; empty if it holds all that are not frozen.
std::string held(const char* which, const OwnTraining& training) {
  const auto [count, all] = training.held_by_optimizer();
  if (count == all) return "";
  return text("; the optimizer of the ", which, " model holds ", count, " of its ", all, " parameters");
}

bool have_moved(const nn::Module& from, const nn::Module& to) {
  return !std::ranges::equal(from.parameters(), to.parameters(), same_bytes);
}

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
        a_(made(make_a, Which::first)),
        b_(made(make_b, Which::second)),
        found_(partners(*a_, *b_, map, &result_.reason)) {}

  Comparison run() {
    result_.verdict = Verdict::different;
    if (!result_.reason.empty()) return result_;
    const DType dtype = dtype_of(found_);
    carry_over(found_);
    result_.verdict = Verdict::undecided;
    result_.reason = changes_when_repeated(dtype);
    if (!result_.reason.empty()) return result_;

    RunResult run, reference;
    run.may_be_identical = o_.may_be_identical;
    std::vector<RunResult> controls(static_cast<size_t>(o_.controls)), negative = train_negative_controls();
    Lockstep all;
    OwnTraining& first = add<OwnTraining>(all, reference, false);
    add_controls(all, controls);
    OwnTraining& second = add(all, copy_of_second(), run, false, Which::second);
    for (int step = 0; step < o_.steps; ++step) all.step(batches_(step), 0);

    result_ = judge(run, controls, negative, all, dtype);
    explain(reference, first, second);
    result_.not_compared = left_out(*a_, map_);
    compare_buffers(all);
    if (!TrackedInputs(batches_(0)).names().empty()) result_.not_compared.push_back("gradients of inputs");
    return result_;
  }

 private:
  OwnTraining& add(Lockstep& all, std::unique_ptr<OwnTraining> training, RunResult& record, bool control, Which which) {
    std::unique_ptr<optim::Optimizer> optimizer;
    with_model_named(which, [&] { optimizer = make_optimizer_(training->model().parameters(), which); });
    training->train_with(std::move(optimizer), o_.clip);
    OwnTraining& added = *training;
    all.add(std::move(training), record, control);
    return added;
  }

  // One more training of A, from the parameters that it began with.
  template <class T, class... More> std::unique_ptr<T> copy_of_first(More&&... more) {
    models_.push_back(made(make_a_, Which::first));
    nn::Module& copy = *models_.back();
    copy.load_state_dict(a_->state_dict());
    std::string ignored;
    return std::make_unique<T>(copy, partners(copy, *b_, map_, &ignored).a, loss_, o_.seed,
                               std::forward<More>(more)...);
  }
  template <class T, class... More> T& add(Lockstep& all, RunResult& record, bool control, More&&... more) {
    std::unique_ptr<T> training = copy_of_first<T>(std::forward<More>(more)...);
    T& added = *training;
    add(all, std::move(training), record, control, Which::first);
    return added;
  }

  // One more training of B, from A's mapped parameters.
  std::unique_ptr<OwnTraining> copy_of_second() {
    models_.push_back(made(make_b_, Which::second));
    nn::Module& copy = *models_.back();
    copy.load_state_dict(b_->state_dict());
    std::string ignored;
    return std::make_unique<OwnTraining>(copy, partners(*a_, copy, map_, &ignored), loss_, o_.seed);
  }

  void add_controls(Lockstep& all, std::vector<RunResult>& controls) {
    for (size_t c = 0; c < controls.size(); ++c)
      move_by_one_ulp(add<OwnTraining>(all, controls[c], true).model(), control_seed(o_.seed, static_cast<int>(c) + 1));
  }

  // Two copies of each model that differentiate the first batch: a model that counts its own steps repeats itself.
  std::string changes_when_repeated(DType dtype) {
    const training::Examples batch = batches_(0);
    const auto differ = [&](const char* name, std::unique_ptr<OwnTraining> once, std::unique_ptr<OwnTraining> again) {
      once->differentiate(batch), again->differentiate(batch);
      return not_repeatable(name, *once, *again, dtype);
    };
    const std::string first = differ("first", copy_of_first<OwnTraining>(), copy_of_first<OwnTraining>());
    return first.empty() ? differ("second", copy_of_second(), copy_of_second()) : first;
  }

  // Controls show the rounding noise among the gradients: a negative control does not reach far in noise.
  std::vector<RunResult> train_negative_controls() {
    std::vector<RunResult> controls(static_cast<size_t>(o_.controls));
    std::vector<RunResult> negative(gains(*a_).empty() ? 1 : 2);
    RunResult reference;
    Lockstep all;
    add<OwnTraining>(all, reference, false);
    add_controls(all, controls);
    const training::Examples other = batches_((kExchanged + 1) % o_.steps);
    if (are_equal(batches_(kExchanged % o_.steps), other))
      add<Reversed>(all, negative[0], false);
    else
      add<Misled>(all, negative[0], false, other);
    if (negative.size() > 1) add<Frozen>(all, negative[1], false);
    for (int step = 0; step < kNegativeSteps; ++step) all.step(batches_(step % o_.steps), 0);
    return negative;
  }

  // Adds the findings that the verdict alone does not give.
  void explain(const RunResult& reference, OwnTraining& first, OwnTraining& second) {
    if (result_.verdict == Verdict::undecided) result_.reason = why_undecided(reference, first);
    if (result_.verdict == Verdict::different) {
      const Explained explained = cause(second);
      take_cause(result_, explained);
    }
    result_.reason += held("first", first) + held("second", second);
  }

  // Buffers after the last step of two trainings that are the same. Notes which are not compared.
  void compare_buffers(Lockstep& all) {
    const DType dtype = dtype_of(found_);
    const BufferPairs pairs(*a_, *b_, map_, dtype);
    std::vector<std::vector<Tensor>> of_first;  // of the first model and its controls
    for (const Lockstep::Member& m : all.members().first(all.members().size() - 1))
      of_first.push_back(pairs.of_first(m.training->model()));
    const std::vector<Tensor> of_second = pairs.of_second(all.members().back().training->model());
    CompareCount count{"buffer"};
    std::vector<Deviation> differ;
    for (size_t i = 0; i < pairs.names().size(); ++i) {
      std::vector<Tensor> controls;
      for (size_t c = 1; c < of_first.size(); ++c) controls.push_back(of_first[c][i]);
      const ComparedTensor s =
          compared_secondary("buffer", pairs.names()[i], of_second[i], of_first[0][i], controls, 1, dtype);
      if (s.share(dtype) > 1) differ.push_back(deviation_of(s, dtype));
      if (!has_factor(s.pair) || !result_.equivalent()) result_.not_compared.push_back(pairs.names()[i]);
      ++count.compared;
    }
    result_.not_compared.insert(result_.not_compared.end(), pairs.unpaired().begin(), pairs.unpaired().end());
    if (differ.empty() || !result_.equivalent()) return;
    count.differing = differ.size();
    const size_t n = found_.a.size();
    result_.verdict = Verdict::different;
    result_.first_difference = {
        o_.steps, "buffer", differ[0].where, differ, {{"loss", 1}, {"gradient", n}, {"weight", n}, count}};
    result_.reason = where_to_look(text("after step ", o_.steps), result_.first_difference->counts);
  }

  std::string why_undecided(const RunResult& reference, OwnTraining& first) const {
    const auto broken = std::ranges::find_if_not(reference.losses, [](double loss) { return std::isfinite(loss); });
    if (broken != reference.losses.end())
      return text("the first model's loss is ", number_text(*broken), " at step ",
                  broken - reference.losses.begin() + 1);
    if (!have_moved(*a_, first.model())) return "the optimizer of the first model changes no weight (a rate of 0?)";
    if (result_.horizon.ended_by != "weights" || dynamic_cast<const optim::Sgd*>(&first.optimizer()))
      return result_.reason;
    return text(result_.reason,
                "; Adam makes full steps of gradients that are mostly rounding: try it with an eps of 1e-5, or SGD");
  }

  // Examines the first step that differs, with new models that are trained up to there.
  Explained cause(const OwnTraining& second) {
    Explained explained;
    if (!second.has_gradient()) explained.cause = kNoGradient;
    if (!result_.first_difference || !second.has_gradient()) return explained;
    const int step = result_.first_difference->step;
    const bool of_update = result_.first_difference->quantity == std::string_view("weights");
    Lockstep before;
    RunResult reference, run;
    nn::Module& a = add<OwnTraining>(before, reference, false).model();
    std::unique_ptr<OwnTraining> copy = copy_of_second();
    nn::Module& b = copy->model();
    if (of_update) add(before, std::move(copy), run, false, Which::second);
    for (int t = 0; t + 1 < step; ++t) before.step(batches_(t), 0);
    std::string ignored;
    const Partners now = partners(a, b, map_, &ignored);
    const training::Examples batch = batches_(step - 1);
    if (!of_update) return explain_at(a, b, map_, now, loss_, batch, o_, kCauses * step * (2 + o_.controls));
    if (o_.clip > 0) return explained;
    const StepMaker first = [&](const std::vector<Tensor>& p) { return make_optimizer_(p, Which::first); };
    const StepMaker second_one = [&](const std::vector<Tensor>& p) { return make_optimizer_(p, Which::second); };
    ComparedUpdate update = update_both(before, now, batch);
    update.step = step;
    return explain_update(names_of(now), differing(), update, some_mapped(now), first, second_one);
  }

  static std::vector<std::string> names_of(const Partners& p) {
    std::vector<std::string> names;
    for (const streams::NamedParameter& q : p.a) names.push_back(q.name);
    return names;
  }
  // True if a map acts on some parameter whose weights differ.
  bool some_mapped(const Partners& p) const {
    const std::vector<std::string> names = differing();
    for (size_t i = 0; i < p.a.size(); ++i)
      if (p.routes[i].acts() && std::ranges::find(names, p.a[i].name) != names.end()) return true;
    return false;
  }
  // Names of A's parameters whose weights differ.
  std::vector<std::string> differing() const {
    std::vector<std::string> names;
    for (const Deviation& d : result_.first_difference->deviations)
      if (d.what == "weight") names.push_back(d.where.tensor);
    return names;
  }

  // One more step of A and B.
  static ComparedUpdate update_both(Lockstep& both, const Partners& now, const training::Examples& batch) {
    ComparedUpdate update;
    const auto rows_of = [&](std::vector<UpdateRows>& all, const std::vector<PartnerTensors>& tensors,
                             Training& training) {
      const auto value = [](const Tensor& p) { return detached::clone(p); };
      training.differentiate(batch);
      for (const PartnerTensors& t : tensors)
        all.push_back({t.read(value),
                       t.read([](const Tensor& p) {
                         return p.grad().defined() ? detached::clone(p.grad()) : zeros(p.shape(), p.options());
                       }),
                       {}});
      training.update(0);
      for (size_t i = 0; i < all.size(); ++i) all[i].after = tensors[i].read(value);
    };
    std::vector<PartnerTensors> first;
    for (const streams::NamedParameter& p : now.a) first.push_back({{}, {p.tensor}});
    rows_of(update.a, first, *both.members()[0].training);
    rows_of(update.b, now.tensors, *both.members()[1].training);
    return update;
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
