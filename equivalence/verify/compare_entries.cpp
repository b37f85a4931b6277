#include "equivalence/verify/compare_entries.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/checkpoint_facts.h"
#include "equivalence/convert/convert.h"
#include "equivalence/verify/flipped_value.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using Kind = Canonical::Kind;
using Part = Canonical::Part;
using Relation = EntryComparison::Relation;
using streams::Form;
using streams::Role;

// The largest share of its bound that an entry takes, by what may explain it. NaN counts as infinity.
struct Shares {
  double second = 0, first = 0, both = 0, through = 0, between = 0;
};

class Comparer {
 public:
  Comparer(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
           const streams::Placement& layout_b, bool centred)
      : a_(a),
        b_(b),
        layout_a_(layout_a),
        layout_b_(layout_b),
        centred_(centred),
        same_form_(layout_a.form == layout_b.form && !layout_a.rotation.defined()),
        first_(a, layout_a, centred, same_form_ ? &b : nullptr),
        second_(b, layout_b, centred, same_form_ ? &a : nullptr) {
    for (const TensorMap* state : {&a, &b})
      for (const auto& [name, tensor] : *state)
        if (is_floating(tensor.dtype())) coarsest_ = std::max(coarsest_, epsilon(tensor.dtype()));
    arithmetic_ = std::sqrt(static_cast<double>(layout_a.width)) * epsilon(DType::f64);
  }

  EntryComparison run() {
    if (structure()) {
      for (const Part& part : first_.parts()) compare(part);
      for (const Part& part : second_.parts())
        if (!has(first_, part)) alone(second_, part, "second");
    }
    const auto relate = [&](double share, Relation relation) {
      if (result_.same() || !result_.comparable || !(share <= 1)) return;
      result_.relation = relation, result_.share = share;
    };
    relate(shares_.second, Relation::second_rounded);
    relate(shares_.first, Relation::first_rounded);
    relate(shares_.both, Relation::both_rounded);
    if (!result_.same() && result_.reason.empty()) result_.reason = sentence();
    if (result_.same()) result_.largest.reset();
    return result_;
  }

  // Whether B is A rounded once, but that one value of each slice of A may have been rounded the other way.
  bool through() const { return result_.comparable && shares_.through <= 1; }
  // Whether rounding in a form between the two may explain what differs: at most (1 + ln d) half ulps of an entry (what
  // a row of Q sums to), d of the one that crms_norm does not store.
  bool may_have_come_through() const { return result_.comparable && shares_.between <= 1; }
  double through_share() const { return shares_.through; }

 private:
  static bool has(const Canonical& c, const Part& part) {
    return std::find(c.parts().begin(), c.parts().end(), part) != c.parts().end();
  }

  void incomparable(std::string reason) {
    result_.comparable = false;
    if (result_.reason.empty()) result_.reason = std::move(reason);
  }

  // Norms, and which of them each reader reads through.
  bool structure() {
    if (layout_a_.width != layout_b_.width)
      incomparable(text("the stream's width is ", layout_a_.width, " and ", layout_b_.width));
    for (const streams::NormPlace& n : layout_a_.norms) {
      const streams::NormPlace* other = layout_b_.find_norm(n.name);
      if (!other)
        incomparable(text("only the first has a norm '", n.name, "'"));
      else if (n.normalizes != other->normalizes)
        incomparable(text("norm '", n.name, "' normalizes in the ", n.normalizes ? "first" : "second", " alone"));
      else if (n.eps != other->eps)
        differ(text("eps of ", n.name), n.eps, other->eps,
               text("eps of norm '", n.name, "' is ", exact_decimal(n.eps), " and ", exact_decimal(other->eps)));
    }
    if (layout_a_.norms.size() < layout_b_.norms.size()) incomparable("the second has more norms");
    for (const streams::Place& p : layout_a_.places)
      for (const streams::Place& q : layout_b_.places)
        if (p.name == q.name && p.role == Role::reader && q.role == Role::reader && p.norm != q.norm)
          incomparable(text("'", p.name, "' reads through norm '", p.norm, "' and '", q.norm, "'"));
    return result_.comparable;
  }

  void differ(const std::string& name, double a, double b, std::string reason) {
    shares_ = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    if (result_.reason.empty()) result_.reason = std::move(reason);
    if (!result_.largest) result_.largest = EntryPlace{name, {}, b, a, INFINITY};
  }

  // A bias that conversion creates as zeros is as good as none.
  void alone(const Canonical& c, const Part& part, const char* which) {
    const auto named = [&](const Part& other) { return other.name == part.name; };
    const auto& others = (&c == &first_ ? second_ : first_).parts();
    if (std::any_of(others.begin(), others.end(), named))
      return incomparable(text("'", part.name, "' is one thing to the stream in the first and another in the second"));
    const bool bias = part.kind == Kind::bias || (part.kind == Kind::writer && part.name.ends_with("bias"));
    if (bias && largest_entry(c.at(part).value) == 0) return;
    incomparable(text("only the ", which, " has '", part.name, "'"));
  }

  void compare(const Part& part) {
    if (!has(second_, part)) return alone(first_, part, "first");
    if (part.kind == Kind::exact) return compare_exactly(part.name);
    if (same_form_ && untouched(part)) return;
    const Carried x = first_.at(part), y = second_.at(part);
    if (!(x.value.shape() == y.value.shape()))
      return incomparable(text("'", part.name, "' has ", x.value.shape(), " entries in the first and ", y.value.shape(),
                               " in the second"));
    const auto all = [](const Carried& c, int64_t row) {
      const int64_t at = row * c.value.size(1);
      return Row{c.value.data<double>() + at, c.rounding.data<double>() + at, c.size.data<double>() + at,
                 c.flip.data<double>()[row]};
    };
    const Carried p = solid(x), q = solid(y);
    const Blind blind = blind_rows(part.name);
    for (int64_t row = 0; p.value.numel() > 0 && row < p.value.size(0); ++row)
      if (row >= blind.begin && row < blind.end)
        result_.blind |= beyond_rounding(p.value.size(1), all(p, row), all(q, row));
      else
        compare_row(part.name, row, p.value.size(1), all(p, row), all(q, row),
                    part.kind == Kind::writer ? Role::writer : Role::reader);
  }

  // Whether both make the part from the same bits in the same way.
  bool untouched(const Part& part) const {
    const std::vector<std::string> names = first_.sources(part);
    return names == second_.sources(part) && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
             const Tensor *x = a_.find(name), *y = b_.find(name);
             return x && y ? same_bytes(*x, *y) : x == y;
           });
  }

  struct Row {
    const double *value, *rounding, *size;
    double flip;
  };

  bool beyond_rounding(int64_t columns, const Row& x, const Row& y) const {
    for (int64_t i = 0; i < columns; ++i)
      if (std::abs(x.value[i] - y.value[i]) >
          x.rounding[i] + y.rounding[i] + arithmetic_ * (std::abs(x.value[i]) + std::abs(y.value[i])))
        return true;
    return false;
  }

  // Entries of a bias, each a row of its own, that the function does not see, as either layout knows them: a model
  // without biases has no place for them.
  struct Blind {
    int64_t begin = 0, end = 0;
  };
  Blind blind_rows(const std::string& name) const {
    for (const streams::Placement* layout : {&layout_a_, &layout_b_})
      for (const streams::Place& p : layout->places)
        if (p.name == name && p.blind_end > p.blind_begin) return {p.blind_begin, p.blind_end};
    return {};
  }

  static Carried solid(const Carried& c) {
    return {contiguous(c.value), contiguous(c.rounding), contiguous(c.size), contiguous(c.flip)};
  }

  void compare_row(const std::string& name, int64_t row, int64_t columns, const Row& x, const Row& y, Role role) {
    double largest = 0, size_x = 0, size_y = 0;
    for (int64_t i = 0; i < columns; ++i) {
      largest = larger(largest, std::max(std::abs(x.value[i]), std::abs(y.value[i])));
      size_x = larger(size_x, x.size[i]), size_y = larger(size_y, y.size[i]);
    }
    const double f64 = arithmetic_ * (size_x + size_y) + static_cast<double>(columns) * smallest_step(DType::f64);
    beyond_.clear();
    for (int64_t i = 0; i < columns; ++i) {
      const double difference = std::abs(x.value[i] - y.value[i]);
      const double both = share(difference, x.rounding[i] + y.rounding[i] + f64);
      shares_.second = std::max(shares_.second, share(difference, y.rounding[i] + f64));
      shares_.first = std::max(shares_.first, share(difference, x.rounding[i] + f64));
      shares_.both = std::max(shares_.both, both);
      shares_.through = std::max(shares_.through, share(difference, y.rounding[i] + x.flip + f64));
      beyond_.push_back(std::max(0.0, difference - y.rounding[i] - f64));
      ++entries_;
      if (both <= 1) continue;
      const double halves =
          i + 1 == columns ? static_cast<double>(columns) : 2 + std::log(static_cast<double>(columns));
      shares_.between = std::max(shares_.between, share(difference, x.rounding[i] + y.rounding[i] + f64 +
                                                                        halves * coarsest_ / 2 * (size_x + size_y)));
      ++differing_;
      const double deviation = difference / largest;
      if (result_.largest && !(deviation > result_.largest->deviation)) continue;
      result_.largest = EntryPlace{name, columns > 1 ? Dims{row, i} : Dims{row}, y.value[i], x.value[i], deviation};
    }
    if (std::any_of(beyond_.begin(), beyond_.end(), [](double d) { return d > 0; }))
      shares_.through = std::max(shares_.through, flipped_share(beyond_, x.flip, layout_a_.form, role));
  }

  // The coarser of two dtypes holds the finer one's values, rounded; the values of one dtype are the same bits.
  void compare_exactly(const std::string& name) {
    const Tensor &x = a_.at(name), &y = b_.at(name);
    entries_ += x.numel();
    if (same_bytes(x, y)) return;
    if (!(x.shape() == y.shape()))
      return incomparable(
          text("'", name, "' has shape ", x.shape(), " in the first and ", y.shape(), " in the second"));
    const bool floating = is_floating(x.dtype()) && is_floating(y.dtype());
    const bool second = floating && same_bytes(detach(x).to(y.dtype()), y),
               first = floating && same_bytes(detach(y).to(x.dtype()), x);
    if (second || first) {
      if (!second) shares_.second = shares_.through = INFINITY;
      if (!first) shares_.first = INFINITY;
      return;
    }
    const std::vector<double> p = detach(x).to(DType::f64).to_vector<double>(),
                              q = detach(y).to(DType::f64).to_vector<double>();
    size_t at = 0;  // the largest difference; a zero of another sign is the least of all
    const auto difference = [&](size_t i) {
      return std::signbit(p[i]) != std::signbit(q[i]) ? std::max(std::abs(p[i] - q[i]), 0x1p-1074)
                                                      : std::abs(p[i] - q[i]);
    };
    for (size_t i = 0; i < p.size(); ++i)
      if (difference(i) > difference(at)) at = i;
    if (p.empty() || difference(at) == 0)
      return incomparable(text("'", name, "' is ", x.dtype(), " in the first and ", y.dtype(), " in the second"));
    differ(name, p[at], q[at],
           text("'", name, "', which must be equal to the last bit, has ", exact_decimal(p[at]), " and ",
                exact_decimal(q[at]), " at element ", at));
  }

  std::string sentence() const {
    if (!result_.largest) return "nothing was compared";
    char figures[128];
    std::snprintf(figures, sizeof figures,
                  "%.1e of the largest of its slice, beyond what rounding explains (%lld of %lld",
                  result_.largest->deviation, static_cast<long long>(differing_), static_cast<long long>(entries_));
    const char* where = layout_a_.rotation.defined() ? "in the coordinates of the second"
                        : centred_                   ? "in the coordinates of the Pre-LN model"
                                                     : "as they are stored";
    return text(result_.largest->tensor, result_.largest->index, " is ", exact_decimal(result_.largest->reference),
                " in the first and ", exact_decimal(result_.largest->value), " in the second, ", where, ": ", figures,
                " entries are)");
  }

  const TensorMap &a_, &b_;
  const streams::Placement &layout_a_, &layout_b_;
  bool centred_, same_form_;
  Canonical first_, second_;
  double arithmetic_ = 0, coarsest_ = epsilon(DType::f64);
  Shares shares_;
  std::vector<double> beyond_;  // of each entry of a row: what rounding the second does not explain
  EntryComparison result_;
  int64_t entries_ = 0, differing_ = 0;
};

// Whether converting `from` to `form`, and that to the form of `to`, gives `to`.
bool explained(const TensorMap& from, const streams::Placement& layout, Form form, const TensorMap& to,
               const streams::Placement& layout_to, EntryComparison& result) {
  if (!folded(layout_to)) return false;
  try {
    const Conversion c = convert(from, layout, form);
    Comparer last(c.state, c.layout, to, layout_to, true);
    last.run();
    if (!last.through()) return false;
    result = {};
    result.relation = Relation::through_a_form, result.between = form, result.share = last.through_share();
    return true;
  } catch (const Error&) {
    return false;  // what does not convert was not converted
  }
}

}  // namespace

EntryComparison compare_convertible(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                    const streams::Placement& layout_b) {
  NoGrad no_grad;
  return Comparer(a, layout_a, b, layout_b, true).run();
}

EntryComparison compare_entries(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                const streams::Placement& layout_b) {
  NoGrad no_grad;
  EntryComparison none;
  for (const auto& [state, which] : {std::pair(&a, "first"), {&b, "second"}})
    if (const std::string name = not_finite(*state); !name.empty()) {
      none.finite = false;
      none.reason = text("'", name, "' of the ", which, " holds NaN or infinity");
      return none;
    }
  const std::string why_a = not_convertible(a, layout_a), why_b = not_convertible(b, layout_b);
  const bool centred = why_a.empty() && why_b.empty();
  if (!centred && row_of(layout_a.form).norm != row_of(layout_b.form).norm) {
    none.comparable = false;
    none.reason = text("their forms are ", name_of(layout_a.form), " and ", name_of(layout_b.form), ", and the ",
                       why_a.empty() ? "second" : "first", " has no other: ", why_a.empty() ? why_b : why_a);
    return none;
  }
  Comparer comparer(a, layout_a, b, layout_b, centred);
  EntryComparison result = comparer.run();
  if (result.same() && layout_a.form == layout_b.form && identical(a, b)) result.relation = Relation::identical;
  if (result.same() || !centred || !comparer.may_have_come_through()) return result;
  for (Form form : streams::kLayerNormForms)
    if (form != layout_a.form && form != layout_b.form &&
        (explained(a, layout_a, form, b, layout_b, result) || explained(b, layout_b, form, a, layout_a, result)))
      return result;
  return result;
}

}  // namespace isonorm::equivalence
