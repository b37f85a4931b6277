#include "equivalence/compare/compare_tensors.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "equivalence/compare/power.h"
#include "equivalence/convert/checkpoint_facts.h"
#include "equivalence/lockstep/criterion.h"

namespace isonorm::equivalence {
namespace {

using Row = TensorsComparison::Row;

double usual_tolerance(DType a, DType b) {
  for (const auto& [dtype, tolerance] : {std::pair{DType::bf16, 3e-2}, {DType::f32, 1e-4}})
    if (a == dtype || b == dtype) return tolerance;
  return 1e-10;
}

// Below this share of the largest of all, a gradient can be rounding noise.
double noise_share(DType a, DType b) {
  double share = 0;
  for (DType d : {a, b})
    if (is_floating(d)) share = std::max(share, 1000 * epsilon(d));
  return std::min(share, 1e-2);
}

// What the difference of the first tensor that differs looks like.
std::string likely_cause(const Pair& p) {
  const Tensor d = p.value - p.reference;
  const double whole = largest_entry(d);
  if (!std::isfinite(whole)) return "";
  const double little = 1e-5 * whole;  // what a cause may leave unexplained
  for (int dim = 0; dim < d.rank(); ++dim)
    if (d.size(dim) > 1 && largest_entry(d - mean(d, {dim}, true)) <= little)
      return text("the mean along dimension ", dim,
                  " was taken away from one of the two (the difference is constant "
                  "there): map it with recentre");
  const double factor = sum(p.value * p.reference).item() / sum(square(p.reference)).item();
  if (std::abs(factor) > 1e-6 && largest_entry(p.value - p.reference * factor) <= little)
    return text("a factor of ", factor, " (a mean instead of a sum, another batch, or clipping)");
  if (p.reference.rank() == 2 && p.reference.size(0) == p.reference.size(1) &&
      largest_entry(p.value - transpose(p.reference, 0, 1)) <= little)
    return "a matrix that is stored transposed: map it with transpose";
  return "";
}

// Why integers of one shape differ; empty where all are equal. f64 would not do: it begins to skip some at 2^53.
std::string integers_differ(const Tensor& a, const Tensor& b) {
  const std::vector<int64_t> reference = a.to_vector<int64_t>(), value = b.to_vector<int64_t>();
  const auto [i, j] = std::mismatch(reference.begin(), reference.end(), value.begin());
  if (i == reference.end()) return "";
  return text("has ", *j, " at ", index_at(a.shape(), i - reference.begin()), ", in the reference ", *i,
              " (integers must be equal)");
}

class Comparer {
 public:
  Comparer(const TensorMap& a, const TensorMap& b, const ParameterMap& map, const CompareTensorsOptions& o) : o_(o) {
    for (const std::string& pattern : o.noise) zero_in_exact_arithmetic_.leave_out(pattern);
    std::map<std::string, std::string> originals;  // of every partner, the first one
    for (const auto& [name, tensor] : a) {
      const auto route = map.route(name);
      if (!route) {
        ++left_out_;
        continue;
      }
      const auto [original, first] = originals.emplace(route->name, name);
      const Tensor* partner = b.find(route->name);
      if (!partner)
        result_.only_a.push_back(name);
      else if (!first)
        result_.rows.push_back(
            {.name = name,
             .partner = route->name,
             .shape = tensor.shape(),
             .problem = text("has two originals: ", original->second, " and ", name, " both become ", route->name)});
      else
        pair(name, tensor, *partner, *route);
    }
    for (const auto& [name, tensor] : b)
      if (!originals.count(name) && !(a.find(name) && !map.route(name))) result_.only_b.push_back(name);
  }

  TensorsComparison run() {
    double of_all = 0;
    for (const Pair& p : pairs_) of_all = larger(of_all, p.scale);
    size_t next = 0;
    for (Row& row : result_.rows) {
      if (!row.problem.empty()) continue;
      judge(row, pairs_[next], noise_[next] * of_all, of_all);
      ++next;
    }
    conclude();
    return std::move(result_);
  }

 private:
  void pair(const std::string& name, const Tensor& a, const Tensor& b, const Route& route) {
    Row row{.name = name,
            .partner = route.name,
            .shape = a.shape(),
            .tolerance = o_.tolerance.value_or(usual_tolerance(a.dtype(), b.dtype()))};
    const bool integers = !is_floating(a.dtype()) && !is_floating(b.dtype());
    if (!is_floating(a.dtype()) || !is_floating(b.dtype())) row.tolerance = 0;  // floats that stand for integers, too
    row.identical = route.legs.empty() && same_bytes(a, b);
    try {
      const Tensor x = a.to(DType::f64), y = b.to(DType::f64);
      if (!integers || !route.legs.empty())
        for (const auto& [stored, values] : {std::pair(&a, &x), {&b, &y}})
          check(is_floating(stored->dtype()) || largest_entry(*values) < 0x1p53,
                "holds integers from 2^53 on, which f64 rounds: only integers as they are can be compared with them");
      const Tensor reference = o_.gradients ? x : route.forward(x),
                   value = o_.gradients ? route.adjoint(y, x.shape()) : y;
      row.shape = reference.shape();
      if (!(value.shape() == reference.shape())) {
        row.problem = text("has shape ", b.shape(), ", expected ", reference.shape());
        if (b.rank() == 2 && reference.shape() == Dims{b.size(1), b.size(0)})
          row.problem += " (likely stored transposed: map it with transpose)";
      } else if (integers && route.legs.empty() && !row.identical) {
        row.problem = integers_differ(a, b);
      }
      if (row.problem.empty()) {
        entries_ += reference.numel();
        if (row.tolerance > 0 && !o_.controls.empty()) hold_to_controls(row, a, b, reference, route);
      }
      if (row.problem.empty()) {
        pairs_.push_back({o_.gradients ? name : route.name, value, reference, largest_entry(reference)});
        noise_.push_back(noise_share(a.dtype(), b.dtype()));
      }
    } catch (const Error& e) {
      row.problem = e.what();
    }
    result_.rows.push_back(std::move(row));
  }

  void hold_to_controls(Row& row, const Tensor& a, const Tensor& b, const Tensor& reference, const Route& route) {
    double moved = 0;
    for (size_t c = 0; c < o_.controls.size(); ++c) {
      const Tensor* control = o_.controls[c].find(row.name);
      check(control && control->shape() == a.shape() && control->dtype() == a.dtype(), "has no counterpart of ",
            a.dtype(), " and shape ", a.shape(), " in control ", c + 1);
      const Tensor x = control->to(DType::f64);
      moved = larger(moved,
                     deviation({{row.name, o_.gradients ? x : route.forward(x), reference, largest_entry(reference)}}));
    }
    controls_moved_ = controls_moved_ || moved > 0;
    const DType coarser = is_floating(b.dtype()) && epsilon(b.dtype()) > epsilon(a.dtype()) ? b.dtype() : a.dtype();
    row.tolerance = bound(moved, coarser);
    if (row.tolerance <= largest_bound(coarser)) return;
    row.undecided = true;
    row.problem = text("not comparable: the controls move it by ", scientific(moved),
                       ", which would hide a real difference (the tolerance would be ", scientific(row.tolerance), ")");
  }

  // `small`: below that a gradient can be rounding noise.
  void judge(Row& row, Pair& p, double small, double of_all) {
    row.deviation = deviation({p});
    if (row.verdict() == Verdict::same) {
      if (!row.identical && row.tolerance > 0 && p.scale > 0) row.resolution = seen_from(row.deviation, row.tolerance);
      return;
    }
    if (o_.gradients && p.scale < small && largest_entry(p.value) < small) {
      row.taken_noise = !zero_in_exact_arithmetic_.route(row.name);
      if (row.taken_noise) return;
      row.undecided = true;
      row.problem = text("not comparable: below ", scientific(small / of_all),
                         " of the largest gradient in both, where rounding noise lies (--noise names what is zero in "
                         "exact arithmetic); by its own size it differs by ",
                         scientific(row.deviation));
      return;
    }
    if (result_.first) return;
    result_.first = furthest_off({p});
    result_.likely = likely_cause(p);
  }

  void conclude() {
    size_t differing = 0, undecided = 0, noise = 0;
    bool equal = true;
    const Row *first = nullptr, *first_undecided = nullptr;
    double share = 0, unseen = 0;
    for (const Row& row : result_.rows) {
      equal = equal && row.identical;
      if (!row.identical) unseen = std::max(unseen, row.tolerance);
      result_.resolution = std::max(result_.resolution, row.resolution);
      noise += row.taken_noise;
      if (row.verdict() == Verdict::same && !row.taken_noise)
        share = std::max(share, row.tolerance > 0 ? row.deviation / row.tolerance : 0);
      else if (row.verdict() == Verdict::undecided)
        first_undecided = undecided++ == 0 ? &row : first_undecided;
      else if (row.verdict() == Verdict::different && differing++ == 0)
        first = &row;
    }
    std::string& why = result_.reason;
    const size_t n = result_.rows.size();
    const bool unmeasured = !o_.controls.empty() && !controls_moved_ && !equal;
    if (first && !(unmeasured && first->problem.empty()))
      why = (first->problem.empty()
                 ? text(describe(*result_.first), ": ", scientific(result_.first->deviation),
                        " of the largest entry of its tensor, the tolerance is ", scientific(first->tolerance))
                 : text(first->partner, " ", first->problem)) +
            text(" (", differing, " of ", plural(n, "tensor"), differing == 1 ? " differs)" : " differ)");
    else if (!result_.only_a.empty() || !result_.only_b.empty())
      why = text(!result_.only_a.empty() ? text("only the first has ", result_.only_a[0])
                                         : text("only the second has ", result_.only_b[0]),
                 " (", plural(result_.only_a.size() + result_.only_b.size(), "tensor"), " without partner)");
    else if (n == 0)
      why = "no tensors were compared";
    else if (entries_ == 0)
      why = "no entries were compared";
    else if (unmeasured) {
      result_.verdict = Verdict::undecided;
      result_.first.reset(), result_.likely.clear();
      why = "the controls are equal to the first: nothing was measured";
    } else if (first_undecided) {
      result_.verdict = Verdict::undecided;
      why = text(first_undecided->name, " is ", first_undecided->problem, " (", undecided, " of ", plural(n, "tensor"),
                 "; the others agree)");
    } else {
      result_.verdict = Verdict::same;
      result_.identical = equal;
      why = equal ? text(plural(n, "tensor"), ", equal to the last bit")
                  : text(plural(n, "tensor"), ", at most ", std::ceil(100 * share), " % of the tolerance");
      if (left_out_ > 0) why += text(", ", left_out_, " left out by the map");
      if (result_.resolution > 0) why += ", " + would_have_shown(result_.resolution);
      if (unseen > 0) why += text(", entries below ", scientific(unseen), " of the largest of their tensor not seen");
      if (noise > 0) why += text(", ", noise, " taken for noise as named");
    }
    if (result_.verdict != Verdict::same) result_.resolution = 0;
    if (first && !first->problem.empty()) result_.likely.clear(), result_.first.reset();
  }

  const CompareTensorsOptions& o_;
  ParameterMap zero_in_exact_arithmetic_;  // leaves them out
  TensorsComparison result_;
  std::vector<Pair> pairs_;      // of the rows without a problem, in order
  std::vector<double> noise_;    // their noise_share
  int64_t entries_ = 0;          // in all pairs
  bool controls_moved_ = false;  // some tensor of some control is not A's
  size_t left_out_ = 0;          // tensors of A
};

std::string sentence(const TensorsComparison& r) {
  return text(r.reason, r.likely.empty() ? "" : "; likely ", r.likely);
}

}  // namespace

TensorsComparison compare_tensors(const TensorMap& a, const TensorMap& b, const ParameterMap& map,
                                  const CompareTensorsOptions& options) {
  NoGrad no_grad;
  return Comparer(a, b, map, options).run();
}

std::string TensorsComparison::message() const { return text(name_of(verdict), ": ", sentence(*this)); }

reports::Document document_of(const TensorsComparison& r) {
  using reports::Value;
  reports::TextTable tensors{
      .heading = "Tensors",
      .columns = {"in A", "in B", "shape", "deviation", "tolerance", "resolution", "problem", "verdict"},
      .detail = true};
  for (const TensorsComparison::Row& row : r.rows) {
    const reports::Tone tone = row.verdict() == Verdict::different ? reports::Tone::bad : reports::Tone::plain;
    tensors.rows.push_back({{row.name},
                            {row.partner},
                            {text(row.shape)},
                            row.problem.empty() ? reports::number_cell(row.deviation) : reports::TextCell{},
                            reports::number_cell(row.tolerance),
                            reports::number_cell(row.resolution),
                            {row.problem},
                            {name_of(row.verdict()), tone}});
  }
  const auto alone = [&](const std::string& name, const char* where) {
    tensors.rows.push_back({{name}, {}, {}, {}, {}, {}, {where}, {name_of(Verdict::different), reports::Tone::bad}});
  };
  for (const std::string& name : r.only_a) alone(name, "only in A");
  for (const std::string& name : r.only_b) alone(name, "only in B");
  const EntryPlace place = r.first.value_or(EntryPlace{});
  return {.title = "Two sets of tensors",
          .tone = r.same()                          ? reports::Tone::good
                  : r.verdict == Verdict::different ? reports::Tone::bad
                                                    : reports::Tone::plain,
          .verdict = name_of(r.verdict),
          .sentence = sentence(r),
          .details = {{"identical", r.identical},
                      {"resolution", r.resolution},
                      {"furthest off", r.first ? Value{place.tensor + text(place.index)} : Value{}},
                      {"its value", r.first ? Value{place.value} : Value{}},
                      {"in the reference", r.first ? Value{place.reference} : Value{}},
                      {"its deviation", r.first ? Value{place.deviation} : Value{}}},
          .tables = {tensors}};
}

}  // namespace isonorm::equivalence
