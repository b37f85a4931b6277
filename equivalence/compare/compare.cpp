#include "equivalence/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "autograd/ops/loss.h"
#include "core/printed.h"
#include "equivalence/compare/cause.h"
#include "equivalence/compare/own_training.h"
#include "equivalence/compare/power.h"
#include "equivalence/lockstep/criterion.h"

namespace isonorm::equivalence {
namespace {

std::vector<Pair> loss_pair(const Training& run, const Training& reference) {
  return {{"", from_vector(std::vector{run.loss()}, {}), from_vector(std::vector{reference.loss()}, {}),
           std::abs(reference.loss())}};
}

// Something that is compared at a point: how far B is off, and how far the controls are at most.
struct Seen {
  const char* quantity;  // "loss", "gradient"
  Pair pair;
  Offset off, control = {};

  Offset limit(DType dtype) const { return {bound(control.entry, dtype), bound(control.factor, dtype)}; }
  // The part of its limit that it uses; infinite for NaN.
  double share(DType dtype) const {
    const double most = larger(off.entry / limit(dtype).entry, off.factor / limit(dtype).factor);
    return std::isnan(most) ? INFINITY : most;
  }
};

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
      const std::vector<Seen> seen = look(batch);
      note(point, seen);
      if (!result_.first) continue;
      const Seen& gradient = worst(std::span(seen).last(std::max<size_t>(1, seen.size() - 1)));
      result_.likely = likely_cause(
          a_, b_, partners_, loss_, batch, [&] { return worst(look(batch)).share(dtype_) > 1; }, gradient.pair,
          gradient.limit(dtype_).entry);
    }
    if (!result_.first) conclude();
    return result_;
  }

 private:
  // Of a quantity, after all points so far: a factor of 1 + `factor` of it would have shown.
  struct Known {
    std::string name;
    double factor = INFINITY;
  };

  // Loss and gradients of the two on a batch, with the modules as they are.
  std::vector<Seen> look(const training::Examples& batch) {
    OwnTraining first(a_, partners_.a, loss_, o_.seed), second(b_, partners_, loss_, o_.seed);
    first.differentiate(batch);
    const auto moved = controls(first, batch);
    second.differentiate(batch);
    const auto pairs_of = [&](const OwnTraining& run) {
      std::vector<Pair> pairs = loss_pair(run, first);
      for (Pair& p : run.gradient_pairs(first)) pairs.push_back(std::move(p));
      return pairs;
    };
    std::vector<Seen> seen;
    for (const Pair& p : pairs_of(second)) seen.push_back({seen.empty() ? "loss" : "gradient", p, offset(p)});
    for (const auto& control : moved) {
      const std::vector<Pair> pairs = pairs_of(*control);
      for (size_t k = 0; k < seen.size(); ++k) seen[k].control = larger(seen[k].control, offset(pairs[k]));
    }
    return seen;
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

  const Seen& worst(std::span<const Seen> seen) const {
    return *std::max_element(seen.begin(), seen.end(),
                             [this](const Seen& x, const Seen& y) { return x.share(dtype_) < y.share(dtype_); });
  }

  void note(int point, const std::vector<Seen>& seen) {
    known_.resize(seen.size());
    for (size_t k = 0; k < seen.size(); ++k) {
      const auto& [quantity, pair, off, control] = seen[k];
      result_.deviation = larger(result_.deviation, off.entry);
      result_.control = larger(result_.control, control.entry);
      moved_ = moved_ || (k > 0 && control.entry > 0);
      known_[k].name = k > 0 ? pair.name : "the loss";
      const Offset limit = seen[k].limit(dtype_);
      if (has_factor(pair))
        known_[k].factor =
            std::min({known_[k].factor, seen_from(off.entry, limit.entry), seen_from(off.factor, limit.factor)});
    }
    const Seen& most = worst(seen);
    share_ = std::max(share_, most.share(dtype_));
    if (share_ <= 1) return;
    set_first(point, most);
    if (&most != &seen.front() || seen.size() == 1) return;
    const Seen& gradient = worst(std::span(seen).subspan(1));  // it says where to look, which the loss does not
    if (gradient.share(dtype_) > 1) result_.reason += text("; the gradient there: ", off_by(gradient));
  }

  void set_first(int point, const Seen& s) {
    result_.first = {point, s.quantity, *furthest_off({s.pair})};
    result_.reason = text(s.quantity, " at point ", point, ": ", off_by(s));
  }

  std::string off_by(const Seen& s) const {
    const Offset limit = s.limit(dtype_);
    const bool as_a_whole = s.off.entry <= limit.entry;
    const EntryPlace place = *furthest_off({s.pair});
    return text(scientific(as_a_whole ? s.off.factor : s.off.entry), as_a_whole ? " of its size" : "",
                ", the bound is ", scientific(as_a_whole ? limit.factor : limit.entry), "; ",
                place.tensor.empty() ? "it" : "", describe(place));
  }

  void conclude() {
    result_.verdict = Verdict::undecided;
    const auto has_none = [](const Known& k) { return std::isinf(k.factor); };
    const auto unseen = std::count_if(known_.begin() + 1, known_.end(), has_none);
    Known least{"", 0};
    for (const Known& k : known_)
      if (!has_none(k) && k.factor > least.factor) least = k;
    result_.resolution = least.factor;
    if (!moved_)
      result_.reason = "the controls, moved by one ulp, have the same gradients: nothing was measured";
    else if (unseen + 1 == std::ssize(known_))
      result_.reason = "all gradients are 0 or rounding noise: nothing was measured";
    else if (least.factor > largest_bound(dtype_))
      result_.reason = text("the controls, moved by one ulp, deviate by ", scientific(result_.control),
                            ", which would hide a real difference: ", would_have_shown(least.factor, least.name),
                            ", a verdict needs 1 + ", scientific(largest_bound(dtype_)));
    else if (result_.deviation == 0 && !o_.may_be_identical)
      result_.reason = "equal to the last bit at every point: something was compared with itself";
    else {
      result_.verdict = Verdict::same;
      result_.reason = text("at ", o_.points, " points at most ", std::ceil(100 * share_), " % of the bound; ",
                            would_have_shown(least.factor),
                            unseen > 0 ? text(", but for ", unseen, " that are 0 or rounding noise") : "");
    }
  }

  nn::Module &a_, &b_;
  const Partners& partners_;
  const Objective& loss_;
  const CompareOptions& o_;
  DType dtype_;
  Comparison result_;
  std::vector<Known> known_;  // the loss, then the gradients
  double share_ = 0;
  bool moved_ = false;  // some control's gradient is not the first model's
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
