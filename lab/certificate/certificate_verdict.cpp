// Draws the verdicts and figures of a certificate from its parts.
#include "lab/certificate/certificate.h"

#include <algorithm>
#include <cmath>

namespace isonorm::equivalence {
namespace {

std::vector<double> largest_predicted(FormErrors errors) {
  for (TensorErrors& t : errors) t.error = t.predicted;
  return largest_errors(errors);
}

// exp of the mean of logarithms, so that a few points with a much larger error do not dominate. NaN if there are no
// values.
class GeometricMean {
 public:
  void add(const std::vector<double>& values) {
    for (double v : values) sum_ += std::log(v), ++count_;
  }
  operator double() const { return std::exp(sum_ / count_); }

 private:
  double sum_ = 0, count_ = 0;
};

// The figures of a dtype. verdicts[i] belongs to all[i].
DTypeErrors errors_in(DType dtype, const std::vector<PointErrors>& all,
                      const std::vector<ArchitectureVerdict>& verdicts) {
  DTypeErrors d{.dtype = dtype, .least_seen = INFINITY, .as_expected = true};
  GeometricMean forms[kPointFormCount], predicted[kPointFormCount], kept[kPointFormCount], plain, kept_plain, rounded,
      unrounded;
  for (size_t i = 0; i < all.size(); ++i) {
    const PointErrors& e = all[i];
    if (e.dtype != dtype) continue;
    d.as_expected = d.as_expected && verdicts[i].as_expected();
    d.redrawn += e.redrawn;
    plain.add(largest_errors(e.plain));
    kept_plain.add(e.kept_plain);
    for (size_t f = 0; f < kPointFormCount; ++f) {
      const PointVerdict& v = verdicts[i].forms[f];
      for (const auto& [most, one] : {std::pair{&d.median, &v.median}, {&d.largest, &v.largest}, {&d.scale, &v.scale}})
        most->take(one->value, text(e.architecture.name, ", ", name_of_form(f), ", ", one->of));
      d.least_seen = std::min(d.least_seen, v.least_seen);
      d.always_seen = larger(d.always_seen, v.always_seen);
      forms[f].add(largest_errors(e.forms[f]));
      predicted[f].add(largest_predicted(e.forms[f]));
      kept[f].add(e.kept[f]);
      rounded.add(e.rounded[f]);
      if (!e.rounded[f].empty()) unrounded.add(largest_errors(e.forms[f]));
    }
  }
  d.plain = plain, d.kept_plain = kept_plain, d.rounded = rounded, d.unrounded = unrounded;
  std::copy_n(forms, kPointFormCount, d.forms);
  std::copy_n(predicted, kPointFormCount, d.predicted);
  std::copy_n(kept, kPointFormCount, d.kept);
  return d;
}

std::vector<ArchitectureVerdict> verdicts_of(const std::vector<PointErrors>& all, int points) {
  std::vector<ArchitectureVerdict> verdicts;
  for (const PointErrors& e : all) verdicts.push_back(judge(e, points));
  return verdicts;
}

std::string named(const std::string& what, DType dtype) { return text(what, " in ", name_of(dtype)); }

// The first part of `expected` that is missing or in another place; empty if `parts` are exactly the expected ones.
template <class Part, class Name>
std::string out_of_place(const char* what, const std::vector<Part>& parts, const std::vector<std::string>& expected,
                         Name&& name) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (i >= parts.size() || name(parts[i]) != expected[i])
      return text(what, ": nothing to compare for ", expected[i], ", which was expected here");
  return parts.size() == expected.size() ? "" : text(what, ": ", name(parts[expected.size()]), " is there twice");
}

std::string out_of_place(const CertificateResult& r) {
  std::vector<std::string> trained, looked_at, degenerate, wrong;
  const auto list = [](std::vector<std::string>& to, const auto& dtypes, const auto& items) {
    for (DType dtype : dtypes)
      for (const auto& item : items) to.push_back(named(item.name, dtype));
  };
  for (DType dtype : kTrained)
    for (const Architecture& a : r.options.architectures) trained.push_back(named(name_of(a), dtype));
  list(wrong, kTrained, r.options.negative_controls);
  list(looked_at, kLookedAt, r.options.looked_at());
  list(degenerate, kLookedAt, std::span(&kWidth2, 1));
  std::vector<std::string> beside;
  for (DType dtype : kTrained)
    for (const Regime& regime : r.options.trained_regimes())
      beside.push_back(named(text(regime.architecture, ", ", regime.name), dtype));
  const auto of_architecture = [](const auto& part) { return named(part.architecture.name, part.dtype); };
  const auto of_training = [](const Trajectory& t) { return named(name_of(t), t.dtype); };
  for (const std::string& why :
       {out_of_place("trajectories", r.trajectories, trained, of_training),
        out_of_place("trajectories", r.regimes, beside, of_training),
        out_of_place("negative controls", r.negatives, wrong,
                     [](const NegativeControlResult& n) { return named(n.control.name, n.dtype); }),
        out_of_place("gradients", r.gradients, looked_at, of_architecture),
        out_of_place("values of width 2", r.width2, degenerate, of_architecture)})
    if (!why.empty()) return why;
  return trained.empty() || wrong.empty() ? "there was nothing to compare" : "";
}

std::string came_out(const Trajectory& t, Verdict verdict) {
  for (const RunResult& run : t.runs)
    if (!run.as_expected && (run.verdict == verdict || verdict == Verdict::undecided))
      return text(named(name_of(t), t.dtype), ": ", run.form, " came out ", name_of(run.verdict), " (", run.reason,
                  ")");
  return text(named(name_of(t), t.dtype), ": there was nothing to compare");
}

// The first training with this verdict; null if there is none.
const Trajectory* first(const CertificateResult& r, Verdict verdict) {
  for (const Trajectory* t : r.all_trajectories())
    if (t->verdict == verdict) return t;
  return nullptr;
}

// The first thing that contradicts the claim; empty if there is none.
std::string refuted(const CertificateResult& r) {
  if (const std::string why = out_of_place(r); !why.empty()) return why;
  if (const Trajectory* t = first(r, Verdict::different)) return came_out(*t, t->verdict);
  for (const NegativeControlResult& n : r.negatives)
    if (!n.as_expected)
      return text("negative control in ", name_of(n.dtype), ": ", n.control.name, " (", n.run.reason, ")");
  const auto refused = [](const char* what, const std::vector<PointErrors>& all,
                          const std::vector<ArchitectureVerdict>& verdicts) -> std::string {
    for (size_t i = 0; i < all.size(); ++i)
      if (!verdicts[i].as_expected())
        return text(what, " in ", name_of(all[i].dtype), ": ", all[i].architecture.name, ", ", verdicts[i].reason);
    return "";
  };
  const std::string gradients = refused("gradients", r.gradients, r.gradient_verdicts);
  return gradients.empty() ? refused("values", r.width2, r.width2_verdicts) : gradients;
}

// The first undecided training; empty if there is none.
std::string undecided(const CertificateResult& r) {
  const Trajectory* t = first(r, Verdict::undecided);
  return t ? came_out(*t, t->verdict) : "";
}

}  // namespace

std::vector<const Trajectory*> CertificateResult::all_trajectories() const {
  std::vector<const Trajectory*> all;
  for (const auto* part : {&trajectories, &regimes})
    for (const Trajectory& t : *part) all.push_back(&t);
  return all;
}

void conclude(CertificateResult& r) {
  r.gradient_verdicts = verdicts_of(r.gradients, r.options.points);
  r.width2_verdicts = verdicts_of(r.width2, r.options.points);
  r.gradient_errors.clear();
  r.width2_errors.clear();
  for (DType dtype : kLookedAt) {
    if (!r.gradients.empty()) r.gradient_errors.push_back(errors_in(dtype, r.gradients, r.gradient_verdicts));
    r.width2_errors.push_back(errors_in(dtype, r.width2, r.width2_verdicts));
  }
  r.reason = refuted(r);
  r.verdict = Verdict::different;
  if (!r.reason.empty()) return;
  r.reason = undecided(r);
  r.verdict = r.reason.empty() ? Verdict::equivalent : Verdict::undecided;
}

}  // namespace isonorm::equivalence
