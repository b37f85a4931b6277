#include "equivalence/explain/compare_tensors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "core/system/name_pattern.h"
#include "equivalence/convert/state.h"
#include "equivalence/judge/pairs.h"
#include "equivalence/explain/hypotheses.h"
#include "equivalence/judge/criterion.h"

namespace isonorm::equivalence {
namespace {

using Row = TensorsComparison::Row;

constexpr size_t kExplained = 16;  // tensors that hypotheses are tried on

const NumberFormat kF16(DType::f32, true);

double usual_tolerance(NumberFormat a, NumberFormat b) {
  for (const auto& [format, tolerance] :
       {std::pair{NumberFormat(DType::bf16), 3e-2}, {kF16, 4e-3}, {NumberFormat(DType::f32), 1e-4}})
    if (a == format || b == format) return tolerance;
  return 1e-10;
}

// A gradient below this share of the largest gradient can be rounding noise.
double noise_share(NumberFormat a, NumberFormat b) {
  double share = 0;
  for (NumberFormat f : {a, b})
    if (is_floating(f.dtype)) share = std::max(share, 1000 * epsilon(f));
  return std::min(share, 1e-2);
}

// Returns true if x holds U64 or C64 elements of a safetensors file, each as 8 bytes, and `other` does not.
bool holds_bytes(const Tensor& x, const Tensor& other) {
  return x.dtype() == DType::u8 && other.dtype() != DType::u8 && x.rank() == other.rank() + 1 &&
         x.size(x.rank() - 1) == 8;
}

// Makes a pair to compare. Equal infinities at one place become 0 in both, so that finite entries are compared relative
// to the largest finite entry. NaN stays, and differs from everything.
Pair held_against(const std::string& name, const Tensor& value, const Tensor& reference) {
  if (!(value.shape() == reference.shape())) return {name, value, reference, 0};
  if (const double largest = largest_entry(reference); !std::isinf(largest)) return {name, value, reference, largest};
  const Tensor infinite = logical_and(eq(value, reference), eq(abs(reference), INFINITY));
  const Tensor finite = masked_fill(reference, infinite, 0);
  return {name, masked_fill(value, infinite, 0), finite, largest_entry(finite)};
}

// The reason why integers of the same shape differ; empty if all are equal. f64 would not do, because it skips some
// integers from 2^53 on.
std::string integers_differ(const Tensor& a, const Tensor& b) {
  const std::vector<int64_t> reference = a.to_vector<int64_t>(), value = b.to_vector<int64_t>();
  const auto [i, j] = std::mismatch(reference.begin(), reference.end(), value.begin());
  if (i == reference.end()) return "";
  return text("has ", *j, " at ", index_at(a.shape(), i - reference.begin()), ", in the reference ", *i,
              " (integers must be equal)");
}

// The route of a tensor. The words around a parameter's name, "NAME.grad", are also around its partner's.
std::optional<Route> route_of(const ParameterMap& map, const std::string& name) {
  const auto whole = map.route(name);
  const Recorded what = recorded(name);
  if (!whole || what.side != Side::parameter || what.of == name || whole->name != name || !whole->legs.empty())
    return whole;
  auto route = map.route(what.of);
  if (!route) return route;
  const auto wrap = [&](std::string& of) { of = std::string(name).replace(name.find(what.of), what.of.size(), of); };
  wrap(route->name);
  for (std::vector<std::string>* names : {&route->more, &route->before, &route->after})
    for (std::string& of : *names) wrap(of);
  return route;
}

// The names, and the parameters that they name: a rule of the map may fit either.
std::vector<std::string> names_and_parameters(std::vector<std::string> names) {
  for (size_t i = 0, n = names.size(); i < n; ++i) names.push_back(recorded(names[i]).of);
  return names;
}

class Comparer {
 public:
  Comparer(const LazyState& a, const LazyState& b, const ParameterMap& map, const CompareTensorsOptions& o)
      : a_(a), b_(b), o_(o) {
    result_.verdict = Verdict::different;
    for (const std::string& pattern : o.noise) zero_in_exact_arithmetic_.leave_out(pattern);
    result_.order = o.order.source;
    std::vector<std::string> names = o.order.names;
    if (names.empty())
      for (const auto& [name, tensor] : a.outline) names.push_back(name);
    std::map<std::pair<std::string, size_t>, std::string> originals;  // partner and part -> first tensor of A
    std::set<std::string> reached;                                    // of B
    const std::vector<std::string> named = names_and_parameters(names);
    unused_rule_ = map.unused(named);
    for (const std::string& pattern : o.noise) {
      std::vector<std::string> stars;
      check(std::ranges::any_of(named, [&](const std::string& name) { return names::matches(pattern, name, stars); }),
            "compare: the noise '", pattern, "' fits no tensor of the first");
    }
    for (const std::string& name : names) {
      const auto route = route_of(map, name);
      if (!route) {
        ++left_out_;
        continue;
      }
      const std::vector<std::string> partners = route->partners();
      reached.insert(partners.begin(), partners.end());
      const auto [original, first] = originals.emplace(std::pair(route->name, route->before.size()), name);
      if (!std::ranges::all_of(partners, [&](const std::string& part) { return b.outline.find(part); })) {
        result_.only_a.push_back(name);
        continue;
      }
      Compared c{*route, recorded(name)};
      if (o.gradients && c.what.stage == Stage::before) c.what.stage = Stage::gradient;
      Row row{.name = name, .partner = route->partner_name(), .shape = a.outline.at(name).shape()};
      if (first)
        measure(row, c);
      else
        row.problem = text("has two originals: ", original->second, " and ", name, " both become ", route->name);
      at_.emplace(c.what, compared_.size());
      compared_.push_back(std::move(c)), result_.rows.push_back(std::move(row));
    }
    for (const auto& [name, tensor] : b.outline)
      if (!reached.contains(name) && !(a.outline.find(name) && !route_of(map, name))) result_.only_b.push_back(name);
  }

  TensorsComparison run() {
    double largest = 0;
    for (const Compared& c : compared_)
      if (gradient(c)) largest = larger(largest, c.scale);
    for (size_t i = 0; i < compared_.size(); ++i)
      if (result_.rows[i].problem.empty()) judge(result_.rows[i], compared_[i], largest);
    conclude();
    return std::move(result_);
  }

 private:
  // A row's data that the result does not contain.
  struct Compared {
    Route route;
    Recorded what;
    NumberFormat coarser = DType::f64;
    double scale = 0, largest = 0;  // the largest entry of the reference, and of the value
    double noise = 0;               // noise_share()
    bool measured = false;
  };

  bool gradient(const Compared& c) const { return c.what.stage == Stage::gradient; }

  // The two tensors of a row in f64, ready for the comparison.
  Pair pair(const Row& row, const Compared& c, const Tensor& a, const Tensor& b) const {
    const Tensor x = a.to(DType::f64), y = b.to(DType::f64);
    if (is_floating(a.dtype()) || is_floating(b.dtype()) || !c.route.legs.empty())
      for (const auto& [stored, values] : {std::pair(&a, &x), {&b, &y}})
        check(is_floating(stored->dtype()) || largest_entry(*values) < 0x1p53,
              "holds integers from 2^53 on, which f64 rounds: compare them with integers, without a map");
    const Tensor reference = gradient(c) ? x : c.route.forward(x),
                 value = gradient(c) ? c.route.adjoint(y, x.shape()) : y;
    const Tensor* whole = b_.outline.find(row.partner);
    const bool in_b = !gradient(c) && whole && whole->shape() == value.shape();  // else indices are those of A's tensor
    return held_against(in_b ? row.partner : row.name, value, reference);
  }

  std::vector<Tensor> read_stored(const Compared& c) const {
    std::vector<Tensor> stored;
    for (const std::string& name : c.route.partners()) stored.push_back(b_.read(name));
    return stored;
  }

  // B's tensor for a row: whole, joined or cut.
  Tensor partner(const Row& row, const Compared& c, const std::vector<Tensor>& stored) const {
    const auto shape_in_a = [this](const std::string& name) -> std::optional<Dims> {
      const Tensor* outline = a_.outline.find(name);
      return outline ? std::optional(outline->shape()) : std::nullopt;
    };
    return Partner(c.route, row.name, shape_in_a).read(stored);
  }

  void measure(Row& row, Compared& c) {
    const Tensor a = a_.read(row.name);
    const std::vector<Tensor> stored = read_stored(c);
    const NumberFormat format_a = a_.format(row.name), format_b = b_.format(c.route.name);
    try {
      const Tensor b = partner(row, c, stored);
      const bool floats = is_floating(a.dtype()) && is_floating(b.dtype());
      const bool integers = !is_floating(a.dtype()) && !is_floating(b.dtype());
      row.tolerance =
          floats ? o_.tolerance.value_or(usual_tolerance(format_a, format_b)) : 0;  // floats may hold integers
      row.identical = c.route.legs.empty() && format_a == format_b && same_bytes(a, b);
      c.noise = noise_share(format_a, format_b);
      if (floats) c.coarser = coarser(format_a, format_b);
      const Pair p = pair(row, c, a, b);
      row.shape = p.reference.shape();
      if (!(p.value.shape() == row.shape)) {
        row.problem = text("has shape ", b.shape(), ", expected ", row.shape);
        if (floats && b.rank() == 2 && row.shape == Dims{b.size(1), b.size(0)} &&
            deviation({held_against(row.name, contiguous(transpose(p.value, 0, 1)), p.reference)}) <= row.tolerance)
          row.problem += " (stored transposed: map it with transpose)";
        if (holds_bytes(a, b) || holds_bytes(b, a))
          row.problem += " (one is U64 or C64, whose bytes are compared with the same dtype only)";
      } else if (integers && c.route.legs.empty() && !row.identical) {
        row.problem = integers_differ(a, b);
      }
      if (!row.problem.empty()) return;
      entries_ += p.reference.numel();
      if (row.tolerance > 0 && !o_.controls.empty()) hold_to_controls(row, c, a);
      row.deviation = deviation({p});
      c.scale = p.scale, c.largest = largest_entry(p.value), c.measured = true;
    } catch (const Error& e) {
      row.problem = e.what();
    }
  }

  void hold_to_controls(Row& row, const Compared& c, const Tensor& a) {
    const auto mapped = [&](const Tensor& x) { return gradient(c) ? x : c.route.forward(x); };
    const Tensor reference = mapped(a.to(DType::f64));
    for (size_t i = 0; i < o_.controls.size(); ++i) {
      const Tensor x = mapped(o_.controls[i].read(row.name).to(DType::f64));
      row.control = larger(row.control, deviation({held_against(row.name, x, reference)}));
    }
    controls_moved_ = controls_moved_ || row.control > 0;
    row.tolerance = bound(row.control, c.coarser);
    if (row.tolerance <= largest_bound(c.coarser)) return;
    row.undecided = true;
    row.problem = text("not comparable: the controls move it by ", scientific(row.control),
                       ", which would hide a real difference (the tolerance would be ", scientific(row.tolerance), ")");
  }

  // of_all: the largest gradient.
  void judge(Row& row, const Compared& c, double of_all) {
    if (row.verdict() == Verdict::equivalent) {
      if (!row.identical && row.tolerance > 0 && c.scale > 0)
        row.detectable = detectable_factor(row.deviation, row.tolerance);
      return;
    }
    const double small = c.noise * of_all;  // below that a gradient can be rounding noise
    if (!gradient(c) || !(c.scale < small) || !(c.largest < small)) return;
    row.taken_noise = !zero_in_exact_arithmetic_.route(row.name) || !zero_in_exact_arithmetic_.route(c.what.of);
    if (row.taken_noise) return;
    row.undecided = true;
    row.problem = text("not comparable: below ", scientific(small / of_all),
                       " of the largest gradient in both, so it may be rounding noise (--noise names gradients that "
                       "are zero in exact arithmetic); by its own size it differs by ",
                       scientific(row.deviation));
  }

  // The explanation of row i; empty if there is none.
  std::string explained(size_t i) {
    const Row& row = result_.rows[i];
    const Compared& c = compared_[i];
    if (!c.measured) return "";
    Evidence e{.pair = reread(i), .what = c.what, .tolerance = row.tolerance, .eps = epsilon(c.coarser)};
    for (const streams::Layout& layout : o_.layouts)
      for (const auto& [pattern, entry] : layout.entries())
        if (entry.role != streams::Role::neutral && streams::names_tensor(pattern, c.what.of)) {
          const bool beside = pattern != c.what.of && e.pair.reference.rank() == 1;  // the bias of a layer
          e.dim = beside ? 0 : entry.dim;
        }
    e.find = [this](const Recorded& what) -> std::optional<Pair> {
      const auto at = at_.find(what);
      return at != at_.end() && compared_[at->second].measured ? std::optional(reread(at->second)) : std::nullopt;
    };
    e.previous = [this, i]() -> std::optional<Pair> {
      for (size_t k = i; k-- > 0;)
        if (const Compared& p = compared_[k]; p.measured && p.what.step == compared_[i].what.step &&
                                              p.what.stage == Stage::forward && p.what.side == Side::output &&
                                              result_.rows[k].shape == result_.rows[i].shape)
          return reread(k);
      return {};
    };
    e.gradients = [this, i] {
      std::vector<Pair> all;
      for (size_t k = 0; k < compared_.size(); ++k)
        if (gradient(compared_[k]) && compared_[k].measured && compared_[k].what.step == compared_[i].what.step)
          all.push_back(reread(k));
      return all;
    };
    const Explanation found = explain(e);
    for (const char* name : found.tried)
      if (std::ranges::find(result_.tried, name) == result_.tried.end()) result_.tried.push_back(name);
    return found.sentence;
  }

  Pair reread(size_t i) const {
    const Row& row = result_.rows[i];
    return pair(row, compared_[i], a_.read(row.name), partner(row, compared_[i], read_stored(compared_[i])));
  }

  // Explains the first tensor with this verdict for which a hypothesis holds.
  void explain_first(Verdict verdict) {
    size_t looked_at = 0;
    for (size_t i = 0; i < result_.rows.size() && looked_at < kExplained; ++i) {
      if (result_.rows[i].verdict() != verdict) continue;
      const std::string why = explained(i);
      if (!why.empty()) result_.likely_cause = text(looked_at > 0 ? text("of ", result_.rows[i].name, ", ") : "", why);
      if (!why.empty()) return;
      ++looked_at;
    }
  }

  void conclude() {
    size_t differing = 0, undecided = 0, noise = 0, first_at = 0;
    bool equal = true;
    const Row *first = nullptr, *first_undecided = nullptr;
    double share = 0, unseen = 0, furthest = 0;
    for (const Row& row : result_.rows) {
      equal = equal && row.identical;
      if (!row.identical) unseen = std::max(unseen, row.tolerance);
      result_.detectable = std::max(result_.detectable, row.detectable);
      noise += row.taken_noise;
      if (row.verdict() == Verdict::equivalent && !row.taken_noise)
        share = std::max(share, row.tolerance > 0 ? row.deviation / row.tolerance : 0);
      else if (row.verdict() == Verdict::undecided)
        first_undecided = undecided++ == 0 ? &row : first_undecided;
      else if (row.verdict() == Verdict::different && differing++ == 0)
        first = &row;
      if (row.verdict() == Verdict::equivalent && !first) result_.agrees = row.name;
      if (row.verdict() != Verdict::different || !row.problem.empty() || row.deviation <= furthest) continue;
      result_.furthest = row.name, furthest = std::isnan(row.deviation) ? INFINITY : row.deviation;
    }
    if (first)
      first_at = static_cast<size_t>(first - result_.rows.data());
    else
      result_.agrees.clear();
    std::string& why = result_.reason;
    const size_t n = result_.rows.size();
    const bool unmeasured = !o_.controls.empty() && !controls_moved_ && !equal;
    if (first && !(unmeasured && first->problem.empty())) {
      if (first->problem.empty()) {
        const EntryPlace place = *furthest_off({reread(first_at)});
        result_.first_difference = {.quantity = "tensor", .place = place};
        why = text(describe(place), ": ", scientific(place.deviation),
                   " of the largest entry of its tensor, the tolerance is ", scientific(first->tolerance),
                   o_.controls.empty() ? "" : text(", rounding alone does ", scientific(first->control)));
      } else {
        why = text(first->partner, " ", first->problem);
      }
      why += text(" (", differing, " of ", plural(n, "tensor"), differing == 1 ? " differs)" : " differ)");
      if (n > 1)
        why +=
            text(result_.agrees.empty() ? "; it is the first" : "; the last before it that agrees is " + result_.agrees,
                 result_.order.empty() ? "" : ", in the order " + result_.order);
      explain_first(Verdict::different);
    } else if (!result_.only_a.empty() || !result_.only_b.empty())
      why = text(!result_.only_a.empty() ? text("only the first has ", result_.only_a[0])
                                         : text("only the second has ", result_.only_b[0]),
                 " (", plural(result_.only_a.size() + result_.only_b.size(), "tensor"), " without partner)");
    else if (n == 0)
      why = "no tensors were compared";
    else if (entries_ == 0)
      why = "no entries were compared";
    else if (unmeasured) {
      result_.verdict = Verdict::undecided;
      why = "no control moves a tensor of the first: nothing was measured";
    } else if (first_undecided) {
      result_.verdict = Verdict::undecided;
      why = text(first_undecided->name, " is ", first_undecided->problem, " (", undecided, " of ", plural(n, "tensor"),
                 "; the others agree)");
      explain_first(Verdict::undecided);
    } else {
      result_.verdict = Verdict::equivalent;
      result_.identical = equal;
      why = equal ? text(plural(n, "tensor"), ", equal to the last bit")
                  : text(plural(n, "tensor"), ", at most ", std::ceil(100 * share), " % of the tolerance");
      if (left_out_ > 0) why += text(", ", left_out_, " left out by the map");
      if (result_.detectable > 0) why += ", " + detectable_text(result_.detectable);
      if (unseen > 0) why += text(", entries below ", scientific(unseen), " of the largest of their tensor not seen");
      if (noise > 0) why += text(", ", noise, " taken for noise as named");
    }
    if (result_.verdict != Verdict::equivalent) result_.detectable = 0;
    if (result_.verdict == Verdict::different && !unused_rule_.empty())
      why += text("; the map's rule ", unused_rule_,
                  " fits no tensor of the first, or only tensors that an earlier rule takes");
  }

  const LazyState &a_, &b_;
  const CompareTensorsOptions& o_;
  ParameterMap zero_in_exact_arithmetic_;  // leaves them out
  TensorsComparison result_;
  std::vector<Compared> compared_;  // one for each row
  std::map<Recorded, size_t> at_;   // the row of a recorded tensor
  int64_t entries_ = 0;             // in all pairs
  bool controls_moved_ = false;     // some tensor of some control is not A's
  size_t left_out_ = 0;             // number of A's tensors that the map leaves out
  std::string unused_rule_;         // of the map
};

}  // namespace

TensorsComparison compare_tensors(const LazyState& a, const LazyState& b, const ParameterMap& map,
                                  const CompareTensorsOptions& options) {
  if (options.tolerance)
    check(*options.tolerance >= 0, "compare_tensors: the tolerance is ", *options.tolerance, ", expected at least 0");
  NoGrad no_grad;
  for (size_t i = 0; i < options.controls.size(); ++i)
    for (const auto& [name, x] : a.outline) {
      const Tensor* control = options.controls[i].outline.find(name);
      check(control && control->shape() == x.shape() && control->dtype() == x.dtype(), "compare_tensors: control ",
            i + 1, " has no '", name, "' of ", x.dtype(), " and shape ", x.shape(), ", as the first has");
    }
  return Comparer(a, b, map, options).run();
}

Verdict Row::verdict() const {
  if (undecided) return Verdict::undecided;
  return problem.empty() && (taken_noise || deviation <= tolerance) ? Verdict::equivalent : Verdict::different;
}

}  // namespace isonorm::equivalence
