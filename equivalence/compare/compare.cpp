#include "equivalence/compare/compare.h"

#include <cmath>

#include "autograd/ops/loss.h"
#include "core/printed.h"
#include "equivalence/compare/cause.h"
#include "equivalence/compare/own_training.h"
#include "equivalence/lockstep/criterion.h"

namespace isonorm::equivalence {
namespace {

// Controls that deviate by more at a point give a bound under which real differences hide.
double most_of_controls(DType dtype) { return dtype == DType::f64 ? 1e-7 : 1e-3; }

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
      const training::Examples batch = batches(point - 1);
      draw_parameters(a_, generator);
      carry_over(partners_);
      compare(point, batch);
    }
    conclude();
    return result_;
  }

 private:
  void compare(int point, const training::Examples& batch) {
    OwnTraining first(a_, partners_.a, loss_, o_.seed), second(b_, partners_, loss_, o_.seed);
    first.differentiate(batch);
    for (const auto& control : controls(first, batch)) {
      take(control_loss_, loss_pair(*control, first));
      take(control_gradient_, control->gradient_pairs(first));
    }
    second.differentiate(batch);
    const std::vector<Pair> loss = loss_pair(second, first), gradients = second.gradient_pairs(first);
    const bool loss_differs = judge(point, "loss", loss, control_loss_);  // both are judged, whatever the first says
    const bool gradient_differs = judge(point, "gradient", gradients, control_gradient_);
    if (loss_differs || gradient_differs)
      result_.likely = likely_cause(a_, b_, partners_, loss_, batch, [&] { return differ(batch); });
  }

  // The controls of `first` on a batch, which it has noted.
  std::vector<std::unique_ptr<OwnTraining>> controls(OwnTraining& first, const training::Examples& batch) {
    std::vector<std::unique_ptr<OwnTraining>> all;
    for (int c = 1; c <= o_.controls; ++c) {
      const Restore restore(a_);
      move_by_one_ulp(a_, static_cast<uint64_t>(c));
      all.push_back(std::make_unique<OwnTraining>(a_, partners_.a, loss_, o_.seed));
      all.back()->differentiate(batch);
      first.note_control(*all.back());
    }
    return all;
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
    result_.first = {point, quantity, *furthest_off(pairs)};
    result_.reason = text(quantity, " at point ", point, ": ", scientific(d), ", the bound is ", scientific(limit),
                          "; ", result_.first->place.tensor.empty() ? "it" : "", describe(result_.first->place));
    return true;
  }

  // Whether the two still differ, with the modules as they are now.
  bool differ(const training::Examples& batch) {
    OwnTraining first(a_, partners_.a, loss_, o_.seed), second(b_, partners_, loss_, o_.seed);
    first.differentiate(batch);
    controls(first, batch);
    second.differentiate(batch);
    return !(equivalence::deviation(second.gradient_pairs(first)) <= bound(control_gradient_, dtype_));
  }

  void conclude() {
    result_.control = larger(control_loss_, control_gradient_);
    if (result_.first) return;
    result_.verdict = Verdict::undecided;
    if (!(result_.control <= most_of_controls(dtype_)))
      result_.reason = text("the controls, moved by one ulp, deviate by ", scientific(result_.control),
                            ", which would hide a real difference");
    else if (control_gradient_ == 0)
      result_.reason = "the controls, moved by one ulp, have the same gradients: nothing was measured";
    else if (result_.deviation == 0 && !o_.may_be_identical)
      result_.reason = "equal to the last bit at every point: something was compared with itself";
    else {
      result_.verdict = Verdict::same;
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

std::string Comparison::message() const {
  return text(name_of(verdict), ": ", reason, likely.empty() ? "" : "; likely ", likely);
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

}  // namespace isonorm::equivalence
