#include "equivalence/verify/compare_entries.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "core/printed.h"
#include "equivalence/convert/state.h"

namespace isonorm::equivalence {

using Kind = Canonical::Kind;
using Part = Canonical::Part;
using Relation = EntryComparison::Relation;
using streams::Role;

// Compares two pieces.
class EntryCheck::Comparer {
 public:
  Comparer(EntryCheck& all, const Piece& a, const Piece& b)
      : all_(all),
        result_(all.result_),
        a_(a),
        b_(b),
        same_form_(a.plan.form == b.plan.form && !a.plan.rotation.defined()),
        first_(a, all.centred_, same_form_ ? &b.state : nullptr),
        second_(b, all.centred_, same_form_ ? &a.state : nullptr) {}

  void run() {
    all_.identical_ = all_.identical_ && same_form_ && a_.half == b_.half && identical(a_.state, b_.state);
    if (!structure()) return;
    for (const Part& part : first_.parts()) compare(part);
    for (const Part& part : second_.parts())
      if (!has(first_, part)) alone(second_, part, "second");
  }

 private:
  static bool has(const Canonical& c, const Part& part) {
    return std::find(c.parts().begin(), c.parts().end(), part) != c.parts().end();
  }

  void incomparable(std::string reason) {
    result_.comparable = false;
    if (result_.reason.empty()) result_.reason = std::move(reason);
  }

  // Compares the norms, and the norm of each reader.
  bool structure() {
    if (a_.plan.width != b_.plan.width)
      incomparable(text("the stream's width is ", a_.plan.width, " and ", b_.plan.width));
    const auto named = [](const streams::Plan& plan, const std::string& name) {
      return std::ranges::find(plan.norms, name, &streams::Plan::Norm::name);
    };
    for (const streams::Plan::Norm& n : a_.plan.norms) {
      const auto other = named(b_.plan, n.name);
      if (other == b_.plan.norms.end())
        incomparable(text("only the first has a norm '", n.name, "'"));
      else if (n.normalizes != other->normalizes)
        incomparable(text("norm '", n.name, "' normalizes in the ", n.normalizes ? "first" : "second", " alone"));
      else if (n.eps != other->eps)
        result_.other_eps = true,
        differ(text("eps of ", n.name), n.eps, other->eps,
               text("eps of norm '", n.name, "' is ", number_text(n.eps), " and ", number_text(other->eps)));
    }
    if (a_.plan.norms.size() < b_.plan.norms.size()) incomparable("the second has more norms");
    const auto norm_of = [](const streams::Plan& plan, const streams::Plan::Reader& r) {
      return r.norm < 0 ? "" : plan.norms[r.norm].name;
    };
    for (const streams::Plan::Reader& r : a_.plan.readers)
      if (const streams::Plan::Reader* other = b_.plan.reader(r.name))
        if (const std::string x = norm_of(a_.plan, r), y = norm_of(b_.plan, *other); x != y)
          incomparable(text("'", r.name, "' reads through norm '", x, "' and '", y, "'"));
    return result_.comparable;
  }

  void differ(const std::string& name, double a, double b, std::string reason) {
    all_.rows_.rule_out_rounding();
    if (result_.reason.empty()) result_.reason = std::move(reason);
    if (!all_.rows_.largest) all_.rows_.largest = EntryPlace{name, {}, b, a, INFINITY};
  }

  // A missing bias equals a bias of zeros, which conversion creates.
  void alone(const Canonical& c, const Part& part, const char* which) {
    const auto named = [&](const Part& other) { return other.name == part.name; };
    const auto& others = (&c == &first_ ? second_ : first_).parts();
    if (std::any_of(others.begin(), others.end(), named))
      return incomparable(text("'", part.name, "' has one role on the stream in the first and another in the second"));
    const bool bias = part.kind == Kind::bias || (part.kind == Kind::writer && part.name.ends_with("bias"));
    if (bias && is_zero(c.rows(part))) return;
    incomparable(text("only the ", which, " has '", part.name, "'"));
  }

  void compare(const Part& part) {
    if (!has(second_, part)) return alone(first_, part, "first");
    if (part.kind == Kind::exact) return compare_exactly(part.name);
    if (same_form_ && untouched(part)) return;
    const Canonical::Rows x = first_.rows(part), y = second_.rows(part);
    if (!(x.shape() == y.shape()))
      return incomparable(
          text("'", part.name, "' has ", x.shape(), " entries in the first and ", y.shape(), " in the second"));
    const int64_t count = x.shape()[0];
    RowFindings found = compare_rows(
        part.name, x, y,
        {.map = row_of(a_.plan.form).canonical(part.kind == Kind::writer ? Role::writer : Role::reader, a_.plan.width),
         .arithmetic = std::sqrt(static_cast<double>(a_.plan.width)) * epsilon(DType::f64),
         .coarsest = epsilon(coarser(coarsest(a_.state, a_.half), coarsest(b_.state, b_.half))),
         .first_row = first_of(count),
         .blind = blind_rows(part.name)});
    if (found.largest && part.kind != Kind::bias) found.largest->index = in_tensor(part, found.largest->index);
    all_.rows_.add(found);
  }

  // The index, in the tensor, of entry {row, i} of its rows (by_rows()).
  Dims in_tensor(const Part& part, const Dims& at) const {
    if (at.rank < 2) return at;
    const streams::Plan::Writer* writer = a_.plan.writer(part.name);
    const streams::Plan::Reader* reader = a_.plan.reader(part.name);
    const Dims shape = a_.state.at(reader ? reader->tensor() : part.name).shape();
    const int dim = writer ? writer->dim : reader ? reader->dim : shape.rank - 1;
    const int64_t parts = part.kind == Kind::reader ? reader->parts : 1;
    Dims index = shape;
    int64_t row = at[0] / parts;
    index[dim] = at[0] % parts * a_.plan.width + at[1];
    int outer = dim == 0 ? 1 : 0;  // the first of the other dimensions, of which the piece may be a slice
    for (int i = shape.rank - 1; i > outer; --i)
      if (i != dim) index[i] = row % shape[i], row /= shape[i];
    if (shape.rank > 1) index[outer] = row;
    return index;
  }

  static bool is_zero(const Canonical::Rows& rows) {
    Carried x;
    for (int64_t row = 0; row < rows.shape()[0]; ++row) {
      rows.read(row, x);
      if (std::ranges::any_of(x.value, [](double v) { return v != 0; })) return false;
    }
    return true;
  }

  // The index, in the tensor, of the first of the piece's `count` rows or elements.
  int64_t first_of(int64_t count) const { return count / (a_.slices.end - a_.slices.begin) * a_.slices.begin; }

  // True if both make the part from the same bits in the same way.
  bool untouched(const Part& part) const {
    const std::vector<std::string> names = first_.sources(part);
    return names == second_.sources(part) && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
             const Tensor *x = a_.state.find(name), *y = b_.state.find(name);
             return x && y ? same_bytes(*x, *y) : x == y;
           });
  }

  // Entries of a bias, each a row of its own, that the function does not see, by either plan: a model without biases
  // has none in its plan.
  Dims blind_rows(const std::string& name) const {
    for (const Piece* piece : {&a_, &b_})
      if (const auto rows = piece->plan.blind.find(name);
          rows != piece->plan.blind.end() && rows->second[1] > rows->second[0])
        return rows->second;
    return {0, 0};
  }

  // The tensor with 0 in the rows that the function does not see.
  static Tensor seen_of(const Tensor& x, const Dims& blind) {
    if (blind[0] == blind[1] || x.rank() == 0 || x.size(0) < blind[1]) return x;
    const Tensor seen = detach(x).clone();
    fill(seen.narrow(0, blind[0], blind[1] - blind[0]), 0);
    return seen;
  }

  // True if x, rounded to y's format, is y.
  static bool becomes(const Tensor& x, const Tensor& y, NumberFormat format, const std::string& name) {
    try {
      return same_bytes(rounded(x, format, name), y);
    } catch (const Error&) {
      return false;  // it does not fit
    }
  }

  // The coarser format must hold the finer one's rounded values. Within one format, bits must be equal.
  void compare_exactly(const std::string& name) {
    const Dims blind = blind_rows(name);
    const Tensor &whole_x = a_.state.at(name), &whole_y = b_.state.at(name);
    const Tensor x = seen_of(whole_x, blind), y = seen_of(whole_y, blind);
    if (blind[0] < blind[1] && same_bytes(x, y) && !same_bytes(whole_x, whole_y)) all_.rows_.blind = true;
    all_.rows_.entries += x.numel();
    if (same_bytes(x, y)) return;
    if (!(x.shape() == y.shape()))
      return incomparable(
          text("'", name, "' has shape ", x.shape(), " in the first and ", y.shape(), " in the second"));
    const bool floating = is_floating(x.dtype()) && is_floating(y.dtype());
    const NumberFormat of_x = a_.format(name), of_y = b_.format(name);
    const bool second = floating && becomes(x, y, of_y, name), first = floating && becomes(y, x, of_x, name);
    if (second || first) {
      if (!second) all_.rows_.second_rounded = all_.rows_.second_rounded_and_flipped = INFINITY;
      if (!first) all_.rows_.first_rounded = INFINITY;
      return;
    }
    const std::vector<double> p = detach(x).to(DType::f64).to_vector<double>(),
                              q = detach(y).to(DType::f64).to_vector<double>();
    size_t at = 0;  // of the largest difference; zeros with different signs differ least
    const auto difference = [&](size_t i) {
      return std::signbit(p[i]) != std::signbit(q[i]) ? std::max(std::abs(p[i] - q[i]), 0x1p-1074)
                                                      : std::abs(p[i] - q[i]);
    };
    for (size_t i = 0; i < p.size(); ++i)
      if (difference(i) > difference(at)) at = i;
    if (p.empty() || difference(at) == 0)
      return incomparable(
          text("'", name, "' is ", name_of(of_x), " in the first and ", name_of(of_y), " in the second"));
    differ(name, p[at], q[at],
           text("'", name, "', which must be equal to the last bit, has ", number_text(p[at]), " and ",
                number_text(q[at]), " at element ", first_of(x.numel()) + static_cast<int64_t>(at)));
  }

  EntryCheck& all_;
  EntryComparison& result_;
  const Piece &a_, &b_;
  bool same_form_;
  Canonical first_, second_;
};

void EntryCheck::add(const Piece& a, const Piece& b) {
  NoGrad no_grad;
  rotated_ = rotated_ || a.plan.rotation.defined();
  Comparer(*this, a, b).run();
}

EntryComparison EntryCheck::result() const {
  EntryComparison found = result_;
  found.largest = rows_.largest, found.blind = rows_.blind;
  const auto relate = [&](double share, Relation relation) {
    if (found.equivalent() || !found.comparable || !(share <= 1)) return;
    found.relation = relation, found.share = share;
  };
  found.share = rows_.both_rounded;
  relate(rows_.second_rounded, identical_ ? Relation::identical : Relation::second_rounded);
  relate(rows_.first_rounded, Relation::first_rounded);
  relate(rows_.both_rounded, Relation::both_rounded);
  if (found.equivalent()) found.largest.reset();
  if (found.equivalent() || !found.reason.empty()) return found;
  const char* where = rotated_   ? "in the coordinates of the second"
                      : centred_ ? "in the coordinates of the Pre-LN model"
                                 : "as they are stored";
  if (found.largest)
    found.reason =
        text(found.largest->tensor, found.largest->index, " is ", number_text(found.largest->reference),
             " in the first and ", number_text(found.largest->value), " in the second, ", where, ": ",
             printed("%.1e", found.largest->deviation), " of the largest of its slice, beyond what rounding explains (",
             rows_.differing, " of ", rows_.entries, " entries are)");
  else
    found.reason = "nothing was compared";
  return found;
}

}  // namespace isonorm::equivalence
