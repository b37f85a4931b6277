// Two states that need not fit into memory, compared piece by piece (verify.h).
#include <algorithm>
#include <optional>

#include "autograd/grad_mode.h"
#include "equivalence/convert/state.h"
#include "equivalence/verify/reader_check.h"
#include "equivalence/convert/rows.h"
#include "training/steps/loop.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;

struct Side {
  const char* which;
  const LazyState& state;
  const streams::Plan& plan;

  // The reason why the plan has no other coordinates, by names and shapes; empty if it has some.
  std::string not_convertible() const {
    return why([&] { check_form(plan), check_plan(plan, state.outline); });
  }
  // The same by the means of its writers, after all writers were seen.
  std::string not_zero_mean(const ZeroMeans& means) const {
    return why([&] {
      for (const auto& [name, mean] : means) mean.check_writer(name);
    });
  }

 private:
  template <class F> static std::string why(F&& check) {
    try {
      check();
      return {};
    } catch (const Error& e) {
      const std::string what = e.what();
      return what.substr(what.starts_with("convert: ") ? 9 : 0);
    }
  }
};

std::vector<Unit> units(const Side& side, bool centred) {
  return centred ? units_of(side.state.outline, side.plan) : tensors_alone(side.state.outline, side.plan);
}

// The tensors of a pair's side, and their pieces. A side without units has empty pieces.
struct Tensors {
  Tensors(const Side& side, const std::vector<Unit>& units) : side(side), units(units) {
    for (const Unit& u : units)
      for (const std::string& name : u.names)
        if (!held.find(name)) held.add(name, side.state.read(name));
  }
  Piece piece(const Slices& slices) const {
    if (!units.empty()) return piece_of(units, held, slices, side.state.half);
    Piece none{{}, side.plan, slices};
    none.plan.writers.clear(), none.plan.readers.clear(), none.plan.others.clear();
    for (streams::Plan::Norm& n : none.plan.norms) n.weight.clear(), n.bias.clear();
    return none;
  }

  const Side& side;
  const std::vector<Unit>& units;
  TensorMap held;
};

// Calls f(piece of a, piece of b, last, again). If `readers`, in the order of writers_first(), so that readers come
// after writers; otherwise once for each. again: the pieces were visited before.
template <class F> void each_pair(const Side& a, const Side& b, bool centred, bool readers, F&& f) {
  NoGrad no_grad;
  const std::vector<UnitPair> pairs = in_pairs(units(a, centred), units(b, centred));
  const auto visit = [&](size_t i, bool last) {
    const UnitPair& pair = pairs[i];
    const Tensors of_a(a, pair.a), of_b(b, pair.b);
    return each_piece(pair.a.empty() ? pair.b : pair.a, [&](const Slices& slices) {
      return f(of_a.piece(slices), of_b.piece(slices), last, last && writes(pair));
    });
  };
  if (readers) return void(writers_first(pairs, visit));
  for (size_t i = 0; i < pairs.size(); ++i)
    if (!visit(i, false)) return;
}

void add_means(const Piece& p, ZeroMeans& means) {
  if (!row_of(p.plan.form).zero_mean_writers()) return;
  for (const streams::Plan::Writer& w : p.plan.writers)
    means[w.name].add(widened(p.state, w.name), w.dim, p.format(w.name));
}

// True if the plan can belong to a conversion's result, which has no gain, layer scale or tied head.
bool folded(const streams::Plan& plan) {
  const auto plain = [](const streams::Plan::Norm& n) { return n.weight.empty() && n.bias.empty(); };
  const auto unscaled = [](const streams::Plan::Writer& w) { return w.scale.empty(); };
  return std::ranges::none_of(plan.readers, &streams::Plan::Reader::tied) && std::ranges::all_of(plan.norms, plain) &&
         std::ranges::all_of(plan.writers, unscaled);
}

// True if converting `from` to `form`, and the result to the form of `to`, gives `to`.
bool explained(const Side& from, Form form, const Side& to, EntryComparison& result) {
  if (!folded(to.plan)) return false;
  try {
    check_forms(from.plan, form);
    EntryCheck check;
    ZeroMeans means;
    each_pair(from, to, true, false, [&](const Piece& a, const Piece& b, bool, bool) {
      const Conversion c = convert_piece(a, form, {}, means);
      check.add({c.state, c.plan, a.slices, c.half}, b);
      return check.through();
    });
    if (!check.through()) return false;
    result = {};
    result.relation = EntryComparison::Relation::through_a_form, result.between = form;
    result.share = check.through_share();
    return true;
  } catch (const Error&) {
    return false;  // an error: this conversion cannot have been made
  }
}

Deviation compare_readers(const Side& a, const Side& b, std::map<std::string, double>* of) {
  ReaderCheck check(a.plan, b.plan);
  each_pair(a, b, true, true, [&](const Piece& p, const Piece& q, bool last, bool) {
    last ? check.read(p, q) : check.write(p, q);
    return true;
  });
  return check.result(of);
}

StateComparison compare(const Side& a, const Side& b, bool readers) {
  const bool rotated = a.plan.rotation.defined();  // then the plans have been checked for these coordinates
  std::string why_a, why_b;
  if (!rotated) why_a = a.not_convertible(), why_b = b.not_convertible();
  const bool one_kind = row_of(a.plan.form).norm == row_of(b.plan.form).norm;
  StateComparison result;
  EntryComparison& entries = result.entries;
  std::optional<ReaderCheck> of_readers;
  if (readers) of_readers.emplace(a.plan, b.plan);
  const auto run = [&](bool centred) {
    EntryCheck check(centred);
    ZeroMeans means_a, means_b;
    each_pair(a, b, centred, centred && of_readers, [&](const Piece& p, const Piece& q, bool last, bool again) {
      if (!again) {
        for (const auto& [piece, side] : {std::pair(&p, &a), {&q, &b}}) {
          if (const std::string name = training::not_finite(piece->state); !name.empty()) {
            if (readers) check_values(piece->state, piece->plan);
            entries.finite = false,
            entries.reason = text("'", name, "' of the ", side->which, " holds NaN or infinity");
            return false;
          }
          if (centred) add_means(*piece, side == &a ? means_a : means_b);
        }
        check.add(p, q);
      }
      if (!check.comparable()) return false;
      if (centred && of_readers) last ? of_readers->read(p, q) : of_readers->write(p, q);
      return true;
    });
    if (!entries.finite) return;
    entries = check.result();
    if (!entries.comparable || !centred) return;
    if (of_readers) result.readers = of_readers->result(&result.deviations), of_readers.reset();
    if (rotated) return;
    why_a = a.not_zero_mean(means_a), why_b = b.not_zero_mean(means_b);
    if (!why_a.empty() || !why_b.empty() || entries.equivalent() || !check.may_have_come_through()) return;
    for (Form form : streams::layer_norm_forms())
      if (form != a.plan.form && form != b.plan.form &&
          (explained(a, form, b, entries) || explained(b, form, a, entries)))
        return;
  };
  if (why_a.empty() && why_b.empty()) run(true);
  if (!entries.finite || !entries.comparable || (why_a.empty() && why_b.empty())) return result;
  if (one_kind) {
    run(false);
    if (of_readers && entries.finite && entries.comparable) result.readers = compare_readers(a, b, &result.deviations);
    return result;
  }
  entries = {};
  entries.comparable = false;
  entries.reason = text("their forms are ", name_of(a.plan.form), " and ", name_of(b.plan.form), ", and the ",
                        why_a.empty() ? "second" : "first", " has no other: ", why_a.empty() ? why_b : why_a);
  return result;
}

}  // namespace

EntryComparison compare_entries(const LazyState& a, const streams::Plan& plan_a, const LazyState& b,
                                const streams::Plan& plan_b) {
  return compare({"first", a, plan_a}, {"second", b, plan_b}, false).entries;
}

StateComparison compare_states(const LazyState& a, const streams::Plan& plan_a, const LazyState& b,
                               const streams::Plan& plan_b) {
  return compare({"first", a, plan_a}, {"second", b, plan_b}, true);
}

Deviation compare_streams(const LazyState& a, const streams::Plan& plan_a, const LazyState& b,
                          const streams::Plan& plan_b, std::map<std::string, double>* of) {
  return compare_readers({"first", a, plan_a}, {"second", b, plan_b}, of);
}

}  // namespace isonorm::equivalence
