#include "equivalence/compare.h"

#include <cmath>

#include "autograd/ops/loss.h"
#include "equivalence/cause.h"
#include "equivalence/criterion.h"
#include "equivalence/lockstep.h"
#include "equivalence/own_training.h"
#include "equivalence/summary.h"

namespace isonorm::equivalence {
namespace {

// Controls that deviate by more give a bound under which real differences hide.
double most_of_controls(DType dtype) { return dtype == DType::f64 ? 1e-7 : 1e-3; }

std::string powerless(double control, DType dtype) {
  if (control <= most_of_controls(dtype)) return "";
  return text("the controls, moved by one ulp, deviate by ", scientific(control),
              ", which would hide a real difference");
}

DType dtype_of(const Partners& p) {
  const DType dtype = p.a[0].tensor.dtype();
  check(dtype == DType::f64 || dtype == DType::f32, "compare: ", p.a[0].name, " is ", dtype, ", expected f32 or f64");
  return dtype;
}

std::vector<Pair> loss_pair(const Training& run, const Training& reference) {
  return {{"", from_vector(std::vector{run.loss()}, {}), from_vector(std::vector{reference.loss()}, {}),
           std::abs(reference.loss())}};
}

class Points {
 public:
  Points(nn::Module& a, nn::Module& b, const Partners& partners, const Objective& loss, const CompareOptions& o)
      : a_(a), b_(b), partners_(partners), loss_(loss), o_(o), dtype_(dtype_of(partners)) {}

  Comparison run(const Batches& batches) {
    const Restore restore_a(a_), restore_b(b_);
    Generator generator{o_.seed, 0};
    for (int point = 1; point <= o_.points && !result_.first; ++point) {
      const Examples batch = batches(point - 1);
      draw_parameters(a_, generator);
      carry_over(partners_);
      compare(point, batch);
    }
    conclude();
    return result_;
  }

 private:
  void compare(int point, const Examples& batch) {
    OwnTraining first(a_, partners_.a, loss_, o_.seed), second(b_, partners_, loss_, o_.seed);
    first.differentiate(batch);
    for (int c = 1; c <= o_.controls; ++c) {
      const Restore restore(a_);
      move_by_one_ulp(a_, static_cast<uint64_t>(c));
      OwnTraining control(a_, partners_.a, loss_, o_.seed);
      control.differentiate(batch);
      take(control_loss_, loss_pair(control, first));
      take(control_gradient_, control.gradient_pairs(first));
    }
    second.differentiate(batch);
    const std::vector<Pair> loss = loss_pair(second, first), gradients = second.gradient_pairs(first);
    const bool loss_differs = judge(point, "loss", loss, control_loss_);  // both are judged, whatever the first says
    const bool gradient_differs = judge(point, "gradient", gradients, control_gradient_);
    if (loss_differs || gradient_differs)
      result_.likely = likely_cause(a_, b_, partners_, loss_, batch, [&] { return differ(batch); });
  }

  static double take(double& most, const std::vector<Pair>& pairs) {
    const double d = equivalence::deviation(pairs);
    most = larger(most, d);
    return d;
  }

  bool judge(int point, const char* quantity, const std::vector<Pair>& pairs, double control) {
    const double d = take(result_.deviation, pairs), limit = bound(control, dtype_);
    share_ = larger(share_, d / limit);
    if (d <= limit || result_.first) return !(d <= limit);
    result_.first = {point, quantity, *first_beyond(pairs, limit)};
    result_.reason = text(quantity, " at point ", point, ": ", scientific(d), ", the bound is ", scientific(limit),
                          "; ", result_.first->place.tensor.empty() ? "it" : "", describe(result_.first->place));
    return true;
  }

  // Whether the two still differ, with the modules as they are now.
  bool differ(const Examples& batch) {
    OwnTraining first(a_, partners_.a, loss_, o_.seed), second(b_, partners_, loss_, o_.seed);
    first.differentiate(batch);
    second.differentiate(batch);
    return !(equivalence::deviation(second.gradient_pairs(first)) <= bound(control_gradient_, dtype_));
  }

  void conclude() {
    result_.control = larger(control_loss_, control_gradient_);
    if (result_.first) return;
    result_.reason = powerless(result_.control, dtype_);
    if (!result_.reason.empty()) return;
    if (control_gradient_ == 0)
      result_.reason = "the controls, moved by one ulp, have the same gradients: nothing was measured";
    else if (result_.deviation == 0 && !o_.may_be_identical)
      result_.reason = "equal to the last bit at every point: something was compared with itself";
    else {
      result_.same = true;
      result_.reason = text("at ", o_.points, " points at most ", std::ceil(100 * share_), " % of the bound");
    }
  }

  nn::Module &a_, &b_;
  const Partners& partners_;
  const Objective& loss_;
  const CompareOptions& o_;
  DType dtype_;
  Comparison result_;
  double control_loss_ = 0, control_gradient_ = 0, share_ = 0;
};

}  // namespace

Tensor cross_entropy_of(nn::Module& model, const Examples& batch) {
  return cross_entropy(model(batch.inputs), batch.targets);
}

std::string Comparison::message() const {
  return text(same ? "same: " : "different: ", reason, likely.empty() ? "" : "; likely ", likely);
}

Comparison compare_gradients(nn::Module& a, nn::Module& b, const ParameterMap& map, const Objective& loss,
                             const Batches& batches, const CompareOptions& o) {
  check(o.points > 0 && o.controls > 0, "compare_gradients: ", o.points, " points and ", o.controls,
        " controls, expected at least 1 of each");
  Comparison failed;
  const Partners found = partners(a, b, map, &failed.reason);
  if (!failed.reason.empty()) return failed;
  return Points(a, b, found, loss, o).run(batches);
}

Comparison compare_trajectories(const MakeModel& make_a, const MakeModel& make_b, const ParameterMap& map,
                                const Objective& loss, const MakeOptimizer& make_optimizer, const Batches& batches,
                                const CompareOptions& o) {
  check(o.steps > 0 && o.controls > 0, "compare_trajectories: ", o.steps, " steps and ", o.controls,
        " controls, expected at least 1 of each");
  std::vector<std::unique_ptr<nn::Module>> models;
  models.push_back(make_a());
  models.push_back(make_b());
  nn::Module &a = *models[0], &b = *models[1];
  Comparison result;
  const Partners found = partners(a, b, map, &result.reason);
  if (!result.reason.empty()) return result;
  const DType dtype = dtype_of(found);
  carry_over(found);

  RunResult reference, run;
  std::vector<RunResult> controls(static_cast<size_t>(o.controls));
  if (o.may_be_identical) run.form = reference.form = "layer_norm";  // which criterion.h expects to have equal bits
  Lockstep all;
  const auto add = [&](std::unique_ptr<OwnTraining> training, RunResult& record, bool control) {
    training->train_with(make_optimizer(training->model().parameters()), o.clip);
    all.add(std::move(training), record, control);
  };
  add(std::make_unique<OwnTraining>(a, found.a, loss, o.seed), reference, false);
  for (size_t c = 0; c < controls.size(); ++c) {
    models.push_back(make_a());
    nn::Module& control = *models.back();
    control.load_state_dict(a.state_dict());
    const Partners moved = partners(control, b, map, &result.reason);
    if (!result.reason.empty()) return result;
    move_by_one_ulp(control, c + 1);
    add(std::make_unique<OwnTraining>(control, moved.a, loss, o.seed), controls[c], true);
  }
  add(std::make_unique<OwnTraining>(b, found, loss, o.seed), run, false);
  for (int step = 0; step < o.steps; ++step) all.step(batches(step), 0);

  run.control = running_maximum(controls);
  judge(run, dtype);
  result.deviation = all.deviation();
  result.control = all.control_deviation();
  result.first = run.first_difference;
  result.reason = run.reason;
  if (run.as_expected) {
    const std::string doubt = powerless(result.control, dtype);
    result.same = doubt.empty();
    if (!doubt.empty()) result.reason = doubt;
  }
  if (!result.first || result.first->step > 1) return result;
  if (result.first->quantity == std::string_view("weights")) {
    result.likely =
        "the optimizer: at step 1 the gradients agree and the updated weights do not, so its update does not commute "
        "with the map";
    return result;
  }
  const auto fresh_a = make_a(), fresh_b = make_b();
  CompareOptions once = o;
  once.points = 1;
  result.likely = compare_gradients(*fresh_a, *fresh_b, map, loss, batches, once).likely;
  return result;
}

}  // namespace isonorm::equivalence
