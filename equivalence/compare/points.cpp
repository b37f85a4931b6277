#include "equivalence/compare/points.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "equivalence/judge/criterion.h"

namespace isonorm::equivalence {
namespace {

constexpr const char* kIdentical =
    "as one program run twice: if the two may compute the same bits (checkpointing, shared weights), set "
    "CompareOptions::may_be_identical";

}  // namespace

Offset ComparedTensor::limit(DType dtype) const {
  const auto explained = [dtype](double moved) { return std::isnan(moved) ? INFINITY : bound(moved, dtype); };
  return {explained(control.entry), explained(control.factor)};
}

double ComparedTensor::share(DType dtype) const {
  const double most = larger(off.entry / limit(dtype).entry, off.factor / limit(dtype).factor);
  return std::isnan(most) ? INFINITY : most;
}

ComparedTensor compared_loss(const Training& run, const Training& reference,
                             std::span<const Training* const> controls) {
  const Pair pair = run.loss_pair(reference);
  ComparedTensor compared{"loss", pair, offset(pair)};
  for (const Training* control : controls)
    compared.control = larger(compared.control, offset(control->loss_pair(reference)));
  return compared;
}

std::vector<ComparedTensor> compared_gradients(const Training& run, const Training& reference,
                                               std::span<const Training* const> controls, const char* quantity) {
  std::vector<ComparedTensor> compared;
  for (const Pair& p : run.gradient_pairs(reference)) compared.push_back({quantity, p, offset(p)});
  for (const Training* control : controls) {
    const std::vector<Pair> pairs = control->gradient_pairs(reference);
    for (size_t k = 0; k < compared.size(); ++k) compared[k].control = larger(compared[k].control, offset(pairs[k]));
  }
  return compared;
}

ComparedTensor compared_secondary(const char* quantity, const std::string& name, const Tensor& value,
                                  const Tensor& reference, std::span<const Tensor> controls, double otherwise,
                                  DType dtype) {
  const auto moved = [&](double scale) {
    Offset most;
    for (const Tensor& control : controls) most = larger(most, offset({name, control, reference, scale}));
    return most;
  };
  const double largest = largest_entry(reference);
  double scale = largest > 0 ? largest : otherwise;
  if (bound(moved(scale).entry, dtype) > largest_bound(dtype) / 3) scale = INFINITY;
  const Pair pair{name, value, reference, scale};
  return {quantity, pair, offset(pair), moved(scale), true};
}

Deviation deviation_of(const ComparedTensor& s, DType dtype) {
  const Offset limit = s.limit(dtype);
  const bool as_a_whole = s.off.entry <= limit.entry;
  return {s.quantity, *furthest_off({s.pair}), as_a_whole ? s.off.factor : s.off.entry,
          as_a_whole ? limit.factor : limit.entry, as_a_whole};
}

const ComparedTensor& Points::worst(std::span<const ComparedTensor> compared) const {
  return *std::max_element(compared.begin(), compared.end(), [this](const ComparedTensor& x, const ComparedTensor& y) {
    return x.share(dtype_) < y.share(dtype_);
  });
}

Comparison Points::judgement() {
  if (!differs()) conclude();
  return result_;
}

void Points::note(int point, const std::vector<ComparedTensor>& compared) {
  known_.resize(compared.size());
  for (size_t k = 0; k < compared.size(); ++k) {
    const auto& [quantity, pair, off, control, secondary] = compared[k];
    result_.deviation = larger(result_.deviation, off.entry);
    result_.control = larger(result_.control, control.entry);
    moved_ = moved_ || (k > 0 && !secondary && control.entry > 0);
    known_[k].name = k > 0 ? pair.name : "the loss";
    known_[k].secondary = secondary;
    const Offset limit = compared[k].limit(dtype_);
    if (has_factor(pair))
      known_[k].factor = std::min(
          {known_[k].factor, detectable_factor(off.entry, limit.entry), detectable_factor(off.factor, limit.factor)});
  }
  const ComparedTensor& most = worst(compared);
  share_ = std::max(share_, most.share(dtype_));
  if (share_ <= 1) return;
  result_.first_difference = {point, most.quantity, *furthest_off({most.pair})};
  std::vector<CompareCount>& counts = result_.first_difference->counts;
  for (const ComparedTensor& s : compared) {
    if (counts.empty() || counts.back().quantity != s.quantity) counts.push_back({s.quantity});
    ++counts.back().compared;
    if (s.share(dtype_) <= 1) continue;
    ++counts.back().differing;
    result_.first_difference->deviations.push_back(deviation_of(s, dtype_));
  }
  result_.reason = where_to_look(text("at point ", point), counts);
}

void Points::conclude() {
  result_.verdict = Verdict::undecided;
  const auto has_none = [](const Known& k) { return std::isinf(k.factor); };
  ShortList unseen(", ", 6);
  for (auto k = known_.begin() + 1; k != known_.end(); ++k)
    if (has_none(*k)) unseen.add(k->name);
  const bool no_gradient =
      std::all_of(known_.begin() + 1, known_.end(), [&](const Known& k) { return k.secondary || has_none(k); });
  Known least{"", 0};
  for (const Known& k : known_)
    if (!has_none(k) && k.factor > least.factor) least = k;
  result_.detectable = least.factor;
  if (std::isnan(result_.control))
    result_.reason = "the first model, moved by one ulp, gives NaN: what rounding does was not measured";
  else if (!moved_)
    result_.reason = "the controls, moved by one ulp, have the same gradients: nothing was measured";
  else if (no_gradient)
    result_.reason = "all gradients are 0 or rounding noise: nothing was measured";
  else if (least.factor > largest_bound(dtype_))
    result_.reason = text("the controls, moved by one ulp, deviate by ", scientific(result_.control),
                          ", which would hide a real difference (", detectable_text(least.factor, least.name),
                          "; a verdict needs 1 + ", scientific(largest_bound(dtype_)), ")");
  else if (result_.deviation == 0 && !may_be_identical_)
    result_.reason = text("equal to the last bit at every point, ", kIdentical);
  else {
    result_.verdict = Verdict::equivalent;
    result_.reason =
        text("at ", plural(points_, "point"), " at most ", std::ceil(100 * share_), " % of the bound; ",
             detectable_text(least.factor), unseen.empty() ? "" : text(", but for ", unseen, " (0 or rounding noise)"));
  }
}

Comparison judge(RunResult run, std::span<const RunResult> controls, std::span<const RunResult> negative,
                 const Lockstep& all, DType dtype) {
  run.control = running_maximum(controls);
  run.reach = reach(negative);
  judge(run, dtype);
  Comparison result{run, all.deviation(), all.control_deviation()};
  if (run.equivalent() && !run.as_expected)
    result.verdict = Verdict::undecided, result.reason = text("equal to the last bit at every step, ", kIdentical);
  if (result.equivalent()) result.reason += text("; ", detectable_text(run.horizon));
  if (result.verdict == Verdict::different && result.first_difference) {
    const int step = result.first_difference->step;
    result.reason = text(step > 1 ? text("up to step ", step - 1, " all agrees; ") : "",
                         where_to_look(text("at step ", step), result.first_difference->counts));
  }
  if (result.verdict == Verdict::undecided)
    for (size_t q = 0; q < std::size(kQuantities); ++q)
      if (run.horizon.ended_by == kQuantities[q].spoken && run.horizon.limit.*kQuantities[q].size > 0)
        if (const std::string& tensor = all.moved_furthest(q, run.horizon.steps + 1); !tensor.empty())
          result.reason += text("; rounding moves ", tensor, " furthest");
  return result;
}

}  // namespace isonorm::equivalence
