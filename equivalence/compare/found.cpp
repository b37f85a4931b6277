#include "equivalence/compare/found.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "equivalence/lockstep/criterion.h"

namespace isonorm::equivalence {
namespace {

constexpr size_t kMostRows = 8;

std::string in_words(const std::vector<std::string>& parts, const char* last = " and ") {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) all += (i == 0 ? "" : i + 1 < parts.size() ? ", " : last) + parts[i];
  return all;
}

// "all 8 gradients", "the buffer".
std::string all_of(const CompareCount& c) {
  return c.compared == 1 ? "the " + c.quantity
                         : text("all ", plural(static_cast<int64_t>(c.compared), c.quantity.c_str()));
}

// "2 of 8 gradients", "all 8 gradients", "the buffer".
std::string some_of(const CompareCount& c) {
  if (c.differing == c.compared) return all_of(c);
  return text(c.differing, " of ", plural(static_cast<int64_t>(c.compared), c.quantity.c_str()));
}

// Two numbers with the fewest digits, but at least 4, that show their difference in two digits.
std::pair<std::string, std::string> told_apart(double a, double b) {
  int digits = 4;
  while (digits < 17 && !(std::abs(a - b) >= 10 * std::pow(10, 1 - digits) * std::max(std::abs(a), std::abs(b))))
    ++digits;
  const auto written = [digits](double x) { return printed("%.*g", digits, x); };
  return std::isfinite(a) && std::isfinite(b) ? std::pair(written(a), written(b))
                                              : std::pair(number_text(a), number_text(b));
}

constexpr const char* kIdentical =
    "as one program run twice: if the two may compute the same bits (checkpointing, shared weights), set "
    "CompareOptions::may_be_identical";

}  // namespace

std::string where_to_look(const std::string& at, std::span<const CompareCount> counts) {
  std::vector<std::string> agree, differ;
  size_t agreeing = 0, differing = 0;
  for (const CompareCount& c : counts) {
    if (c.differing == 0 && c.compared > 0) agree.push_back(all_of(c)), agreeing += c.compared;
    if (c.differing > 0) differ.push_back(some_of(c)), differing += c.differing;
  }
  const auto differs = [&](const std::string& quantity) {
    return std::any_of(counts.begin(), counts.end(),
                       [&](const CompareCount& c) { return c.quantity == quantity && c.differing > 0; });
  };
  std::string look;
  if (differs("output"))
    look = "look at the forward";
  else if (differs("loss"))
    look = differs("gradient") ? "look at the forward" : "look at a term of the loss that has no gradient";
  else if (differs("gradient"))
    look = "look at the backward";
  else if (differs("weight"))
    look = "look at the update";
  else if (differs("buffer"))
    look = "look at the buffers that the pass changes";
  const auto verb = [](size_t n, const char* one, const char* many) { return n == 1 ? one : many; };
  const std::string agreed =
      agree.empty() ? "" : text(' ', in_words(agree), verb(agreeing, " agrees", " agree"), ", and");
  return text(at, agreed, ' ', in_words(differ), verb(differing, " differs", " differ"), look.empty() ? "" : ": ",
              look);
}

std::string row_of(const DifferingTensor& t) {
  const auto [value, reference] = told_apart(t.place.value, t.place.reference);
  return text(t.quantity, t.place.tensor.empty() ? "" : " of " + t.place.tensor, ": ", scientific(t.deviation),
              t.as_a_whole ? " of its size" : "", ", the bound is ", scientific(t.bound), "; ",
              t.place.tensor.empty() ? "it" : text(t.place.tensor, t.place.index), " is ", value, ", in the reference ",
              reference);
}

std::string Comparison::message() const {
  std::string all = text(name_of(verdict), ": ", reason);
  std::vector<DifferingTensor> rows;
  if (first && verdict == Verdict::different)
    for (const DifferingTensor& t : first->tensors)  // wrong gradients make wrong weights
      if (t.quantity != "weight" || rows.empty() || rows.back().quantity == "weight") rows.push_back(t);
  for (size_t i = 0; i < rows.size() && i < kMostRows; ++i) all += "\n  " + row_of(rows[i]);
  if (rows.size() > kMostRows) all += text("\n  and ", rows.size() - kMostRows, " more");
  if (!place.empty()) all += "\n  " + place;
  if (!cause.empty())
    all += "\n  cause: " + cause;
  else if (!tried.empty())
    all += text("\n  no cause was found; tested: ", in_words(tried));
  ShortList nowhere(", ", 6);
  if (same())
    for (const std::string& name : not_compared) nowhere.add(name);
  return nowhere.empty() ? all : text(all, "; not compared: ", nowhere);
}

Offset Seen::limit(DType dtype) const {
  const auto explained = [dtype](double moved) { return std::isnan(moved) ? INFINITY : bound(moved, dtype); };
  return {explained(control.entry), explained(control.factor)};
}

double Seen::share(DType dtype) const {
  const double most = larger(off.entry / limit(dtype).entry, off.factor / limit(dtype).factor);
  return std::isnan(most) ? INFINITY : most;
}

Seen see_loss(const Training& run, const Training& reference, std::span<const Training* const> controls) {
  const Pair pair = run.loss_pair(reference);
  Seen seen{"loss", pair, offset(pair)};
  for (const Training* control : controls) seen.control = larger(seen.control, offset(control->loss_pair(reference)));
  return seen;
}

std::vector<Seen> see_gradients(const Training& run, const Training& reference,
                                std::span<const Training* const> controls, const char* quantity) {
  std::vector<Seen> seen;
  for (const Pair& p : run.gradient_pairs(reference)) seen.push_back({quantity, p, offset(p)});
  for (const Training* control : controls) {
    const std::vector<Pair> pairs = control->gradient_pairs(reference);
    for (size_t k = 0; k < seen.size(); ++k) seen[k].control = larger(seen[k].control, offset(pairs[k]));
  }
  return seen;
}

Seen see_beside(const char* quantity, const std::string& name, const Tensor& value, const Tensor& reference,
                std::span<const Tensor> controls, double otherwise, DType dtype) {
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

DifferingTensor differing(const Seen& s, DType dtype) {
  const Offset limit = s.limit(dtype);
  const bool as_a_whole = s.off.entry <= limit.entry;
  return {s.quantity, *furthest_off({s.pair}), as_a_whole ? s.off.factor : s.off.entry,
          as_a_whole ? limit.factor : limit.entry, as_a_whole};
}

const Seen& Points::worst(std::span<const Seen> seen) const {
  return *std::max_element(seen.begin(), seen.end(),
                           [this](const Seen& x, const Seen& y) { return x.share(dtype_) < y.share(dtype_); });
}

Comparison Points::found() {
  if (!differs()) conclude();
  return result_;
}

void Points::note(int point, const std::vector<Seen>& seen) {
  known_.resize(seen.size());
  for (size_t k = 0; k < seen.size(); ++k) {
    const auto& [quantity, pair, off, control, beside] = seen[k];
    result_.deviation = larger(result_.deviation, off.entry);
    result_.control = larger(result_.control, control.entry);
    moved_ = moved_ || (k > 0 && !beside && control.entry > 0);
    known_[k].name = k > 0 ? pair.name : "the loss";
    known_[k].beside = beside;
    const Offset limit = seen[k].limit(dtype_);
    if (has_factor(pair))
      known_[k].factor =
          std::min({known_[k].factor, seen_from(off.entry, limit.entry), seen_from(off.factor, limit.factor)});
  }
  const Seen& most = worst(seen);
  share_ = std::max(share_, most.share(dtype_));
  if (share_ <= 1) return;
  result_.first = {point, most.quantity, *furthest_off({most.pair})};
  std::vector<CompareCount>& counts = result_.first->counts;
  for (const Seen& s : seen) {
    if (counts.empty() || counts.back().quantity != s.quantity) counts.push_back({s.quantity});
    ++counts.back().compared;
    if (s.share(dtype_) <= 1) continue;
    ++counts.back().differing;
    result_.first->tensors.push_back(differing(s, dtype_));
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
      std::all_of(known_.begin() + 1, known_.end(), [&](const Known& k) { return k.beside || has_none(k); });
  Known least{"", 0};
  for (const Known& k : known_)
    if (!has_none(k) && k.factor > least.factor) least = k;
  result_.resolution = least.factor;
  if (std::isnan(result_.control))
    result_.reason = "the first model, moved by one ulp, gives NaN: what rounding does was not measured";
  else if (!moved_)
    result_.reason = "the controls, moved by one ulp, have the same gradients: nothing was measured";
  else if (no_gradient)
    result_.reason = "all gradients are 0 or rounding noise: nothing was measured";
  else if (least.factor > largest_bound(dtype_))
    result_.reason = text("the controls, moved by one ulp, deviate by ", scientific(result_.control),
                          ", which would hide a real difference: ", would_have_shown(least.factor, least.name),
                          ", a verdict needs 1 + ", scientific(largest_bound(dtype_)));
  else if (result_.deviation == 0 && !may_be_identical_)
    result_.reason = text("equal to the last bit at every point, ", kIdentical);
  else {
    result_.verdict = Verdict::same;
    result_.reason = text("at ", plural(points_, "point"), " at most ", std::ceil(100 * share_), " % of the bound; ",
                          would_have_shown(least.factor),
                          unseen.empty() ? "" : text(", but for ", unseen, " (0 or rounding noise)"));
  }
}

Comparison found(RunResult run, std::span<const RunResult> controls, std::span<const RunResult> wrong,
                 const Lockstep& all, DType dtype) {
  run.control = running_maximum(controls);
  run.reach = reach(wrong);
  judge(run, dtype);
  Comparison result;
  result.deviation = all.deviation();
  result.control = all.control_deviation();
  result.first = run.first_difference;
  result.horizon = run.horizon;
  result.reason = run.reason;
  result.verdict = run.observed;
  if (run.observed == Verdict::same && !run.as_expected)
    result.verdict = Verdict::undecided, result.reason = text("equal to the last bit at every step, ", kIdentical);
  if (result.same()) result.reason += text("; ", would_have_shown(run.horizon));
  if (result.verdict == Verdict::different && result.first) {
    const int step = result.first->step;
    result.reason = text(step > 1 ? text("up to step ", step - 1, " all agrees; ") : "",
                         where_to_look(text("at step ", step), result.first->counts));
  }
  if (result.verdict == Verdict::undecided)
    for (size_t q = 0; q < std::size(kQuantities); ++q)
      if (run.horizon.ended_by == kQuantities[q].spoken && run.horizon.limit.*kQuantities[q].size > 0)
        if (const std::string& tensor = all.moved_furthest(q, run.horizon.steps + 1); !tensor.empty())
          result.reason += text("; rounding moves ", tensor, " furthest");
  return result;
}

}  // namespace isonorm::equivalence
