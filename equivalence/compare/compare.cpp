#include "equivalence/compare/compare.h"

#include <algorithm>
#include <span>

#include "autograd/engine.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "equivalence/compare/inputs_and_buffers.h"
#include "equivalence/compare/points.h"
#include "equivalence/causes/moved_results.h"
#include "equivalence/compare/own_trial.h"
#include "equivalence/judge/criterion.h"

namespace isonorm::equivalence {
namespace {

// One forward and backward of a model.
struct Run {
  std::unique_ptr<OwnTraining> training;
  std::vector<std::string> inputs;         // the inputs that take gradients
  std::vector<Tensor> of_inputs, buffers;  // gradients; buffers afterwards, as the second model stores them
};

// The runs of A, of its controls and of B on one batch.
struct Sides {
  Run first, second;
  std::vector<Run> controls;
};

class PointComparison {
 public:
  PointComparison(nn::Module& a, nn::Module& b, const ParameterMap& map, const Partners& partners,
                  const Objective& loss, const CompareOptions& o)
      : a_(a),
        b_(b),
        partners_(partners),
        loss_(loss),
        o_(o),
        dtype_(dtype_of(partners)),
        buffers_(a, b, map, dtype_),
        points_(dtype_, o.points, o.may_be_identical),
        not_compared_(left_out(a, map)),
        tracks_inputs_(o.inputs) {
    for (const std::string& name : buffers_.unpaired()) not_compared_.push_back(name);
  }

  Comparison run(const Batches& batches) {
    Generator generator{o_.seed, 0};
    Explained explained;
    for (int point = 1; point <= o_.points && !points_.differs(); ++point) {
      const Restore restore_a(a_), restore_b(b_);
      const training::Examples batch = batches(point - 1);
      choose_weights(generator);
      Sides measured;
      if (point == 1)
        if (const std::string why = changes_when_repeated(batch, measured); !why.empty()) return undecided(why);
      measure(batch, measured);
      if (const std::string why = nothing_to_compare(measured, point, batch); !why.empty()) return undecided(why);
      const std::vector<ComparedTensor> compared = compared_tensors(measured);
      points_.note(point, compared);
      if (points_.differs()) explained = explain(measured, compared, batch, kCauses * point * (2 + o_.controls));
    }
    Comparison result = points_.judgement();
    take_cause(result, explained);
    result.not_compared = not_compared_;
    if (!tracks_inputs_) result.not_compared.push_back("gradients of inputs");
    return result;
  }

  // At the present parameters.
  Explained explain_here(const training::Examples& batch, int budget) {
    const Restore restore_a(a_), restore_b(b_);
    Sides measured;
    measure(batch, measured);
    const std::vector<ComparedTensor> compared = compared_tensors(measured);
    if (points_.worst(compared).share(dtype_) > 1) return explain(measured, compared, batch, budget);
    return {.place =
                "new models with these weights agree on these examples: look at the state that a model keeps from step "
                "to step (a "
                "counter, a cache, a buffer)"};
  }

 private:
  void choose_weights(Generator& generator) {
    std::vector<Tensor> parameters;
    for (const streams::NamedParameter& p : partners_.a) parameters.push_back(p.tensor);
    if (o_.perturb)
      perturb_parameters(parameters, *o_.perturb, generator);
    else
      draw_parameters(parameters, generator, Spread::uniform);
    carry_over(partners_);
  }

  // A, whose results are moved by one ulp if `control` counts from 1; or B. Begins with the present buffers and gives
  // them back.
  Run run_model(Which which, const training::Examples& batch, int control = 0) {
    const bool is_first = which == Which::first;
    nn::Module& model = is_first ? a_ : b_;
    const Restore restore(model, Restore::buffers);
    std::optional<MovedResults> rounding;
    if (control > 0) rounding.emplace(control_seed(o_.seed, control));
    Run run;
    run.training = is_first ? std::make_unique<OwnTraining>(model, partners_.a, loss_, o_.seed)
                            : std::make_unique<OwnTraining>(model, partners_, loss_, o_.seed);
    if (tracks_inputs_) {
      const TrackedInputs tracked(batch);
      run.training->differentiate(tracked.batch());
      run.inputs = tracked.names(), run.of_inputs = tracked.gradients();
    } else {
      run.training->differentiate(batch);
    }
    run.buffers = is_first ? buffers_.of_first(a_) : buffers_.of_second(b_);
    return run;
  }

  // The first run of a model. If its loss, or an op, takes no inputs that have gradients, no run tracks them.
  Run first_run(Which which, const training::Examples& batch) {
    try {
      return run_model(which, batch);
    } catch (const Error&) {
      if (!tracks_inputs_) throw;
      tracks_inputs_ = false;
      return run_model(which, batch);
    }
  }

  // Runs both models twice, and keeps the first runs.
  std::string changes_when_repeated(const training::Examples& batch, Sides& m) {
    for (const auto& [which, name] : {std::pair{Which::first, "first"}, {Which::second, "second"}}) {
      const bool tracked = tracks_inputs_, is_first = which == Which::first;
      Run& once = is_first ? m.first : m.second;
      once = first_run(which, batch);
      if (!is_first && tracks_inputs_ != tracked) m.first = run_model(Which::first, batch);
      const Run again = run_model(which, batch);
      if (std::string why = not_repeatable(name, *once.training, *again.training, dtype_); !why.empty()) return why;
    }
    return "";
  }

  // The runs that are missing.
  void measure(const training::Examples& batch, Sides& m) {
    if (!m.first.training) m.first = run_model(Which::first, batch);
    if (!m.second.training) m.second = run_model(Which::second, batch);
    for (int c = 1; c <= o_.controls; ++c) {
      const Restore restore(a_);
      move_by_one_ulp(a_, control_seed(o_.seed, c));
      m.controls.push_back(run_model(Which::first, batch, c));
      m.first.training->note_control(*m.controls.back().training, false);
    }
  }

  std::string nothing_to_compare(const Sides& m, int point, const training::Examples& batch) const {
    const auto has_nan = [](const Tensor& x) {
      return x.defined() && is_floating(x.dtype()) && any(isnan(x)).item() != 0;
    };
    if (const std::string what = not_finite(*m.first.training); !what.empty())
      return text("the first model's ", what, " at point ", point,
                  std::ranges::any_of(batch.tensors(), has_nan) ? ": the examples have NaN"
                  : o_.perturb                                  ? ""
                               : ": the weights that are drawn there may not suit it (a scale that must be positive); "
                                 "CompareOptions::perturb keeps near the present weights");
    return m.first.training->has_gradient() ? "" : "no parameter of the first model gets a gradient from the loss";
  }

  // The loss and all gradients, then the gradients of inputs and the buffers.
  std::vector<ComparedTensor> compared_tensors(const Sides& m) const {
    std::vector<const Training*> noted;
    for (const Run& control : m.controls) noted.push_back(control.training.get());
    std::vector<ComparedTensor> compared{compared_loss(*m.second.training, *m.first.training, noted)};
    double largest = 0;
    for (ComparedTensor& s : compared_gradients(*m.second.training, *m.first.training, noted)) {
      largest = larger(largest, s.pair.scale);
      compared.push_back(std::move(s));
    }
    for (size_t i = 0; i < m.first.inputs.size(); ++i)
      compared.push_back(secondary("gradient", m.first.inputs[i], m, &Run::of_inputs, i, largest));
    for (size_t i = 0; i < buffers_.names().size(); ++i)
      compared.push_back(secondary("buffer", buffers_.names()[i], m, &Run::buffers, i, 1));
    return compared;
  }

  // Tensor i of `of` in each run.
  ComparedTensor secondary(const char* quantity, const std::string& name, const Sides& m, std::vector<Tensor> Run::*of,
                           size_t i, double otherwise) const {
    std::vector<Tensor> controls;
    for (const Run& control : m.controls) controls.push_back((control.*of)[i]);
    return compared_secondary(quantity, name, (m.second.*of)[i], (m.first.*of)[i], controls, otherwise, dtype_);
  }

  Explained explain(const Sides& m, const std::vector<ComparedTensor>& compared, const training::Examples& batch,
                    int budget) {
    Explained explained;
    if (!m.second.training->has_gradient()) explained.cause = kNoGradient;
    const auto secondary = [this](const ComparedTensor& s) { return s.secondary || s.share(dtype_) <= 1; };
    if (!explained.cause.empty() || std::ranges::all_of(compared, secondary)) return explained;
    const std::string without = without_gradient(m, compared);
    OwnTrial trial(a_, b_, partners_, loss_, batch, o_.seed, compared, budget);
    explained = explain_difference(trial);
    if (!without.empty()) explained.place += (explained.place.empty() ? "" : "; ") + without;
    return explained;
  }

  // "g and b are frozen in the second model": parameters whose gradients differ because B's partner gets none.
  std::string without_gradient(const Sides& m, const std::vector<ComparedTensor>& compared) const {
    ShortList unreached(", ", 4), frozen(", ", 4);
    for (size_t i = 0; i < partners_.a.size(); ++i) {
      const std::string& name = partners_.a[i].name;
      const bool differs = std::ranges::any_of(compared, [&](const ComparedTensor& s) {
        return !s.secondary && s.pair.name == name && s.share(dtype_) > 1;
      });
      if (!differs || m.second.training->has_gradient(i) || !m.first.training->has_gradient(i)) continue;
      (requires_grad(partners_.b[i].tensor) ? unreached : frozen).add(name);
    }
    std::string all;
    if (!frozen.empty()) all = text("the second model has frozen ", frozen);
    if (!unreached.empty())
      all += text(all.empty() ? "" : "; ", "in the second model no gradient reaches ", unreached,
                  " (the loss does not use it, or it is detached)");
    return all;
  }

  Comparison undecided(const std::string& why) const {
    Comparison result;
    result.verdict = Verdict::undecided;
    result.reason = why;
    return result;
  }

  nn::Module &a_, &b_;
  const Partners& partners_;
  const Objective& loss_;
  const CompareOptions& o_;
  DType dtype_;
  BufferPairs buffers_;
  Points points_;
  std::vector<std::string> not_compared_;
  bool tracks_inputs_;
};

}  // namespace

Explained explain_at(nn::Module& a, nn::Module& b, const ParameterMap& map, const Partners& partners,
                     const Objective& loss, const training::Examples& batch, const CompareOptions& o, int budget) {
  carry_over(partners);
  return PointComparison(a, b, map, partners, loss, o).explain_here(batch, budget);
}

Comparison compare_gradients(nn::Module& a, nn::Module& b, const ParameterMap& map, const Objective& loss,
                             const Batches& batches, const CompareOptions& o) {
  check(o.points > 0 && o.controls > 0, "compare_gradients: ", o.points, " points and ", o.controls,
        " controls, expected at least 1 of each");
  check(!o.perturb || (*o.perturb >= 0 && *o.perturb < 1), "compare_gradients: perturb is ", o.perturb.value_or(0),
        ", expected 0 or more and less than 1");
  Comparison failed;
  const Partners found = partners(a, b, map, &failed.reason);
  failed.verdict = Verdict::different;
  if (!failed.reason.empty()) return failed;
  return PointComparison(a, b, map, found, loss, o).run(batches);
}

}  // namespace isonorm::equivalence
