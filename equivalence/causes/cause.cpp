#include "equivalence/causes/cause.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"
#include "equivalence/explain/models.h"
#include "nn/norm.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

// The factor that all gradients of B have in common, except gradients of rounding noise; nothing if there is none.
std::optional<double> shared_factor(const Trial& t) {
  NoGrad no_grad;
  double along = 0, size = 0;
  int64_t entries = 0;
  for (const TrialPair& g : t.gradients) {
    if (g.noise) continue;
    const Tensor r = g.pair.reference.to(DType::f64) / g.pair.scale, v = g.pair.value.to(DType::f64) / g.pair.scale;
    along += sum(v * r).item(), size += sum(square(r)).item(), entries += r.numel();
  }
  const double k = along / size;
  if (entries < 2 || !std::isfinite(k) || k == 0) return {};
  for (size_t i = 0; i < t.gradients.size(); ++i) {
    if (t.gradients[i].noise) continue;
    Pair p = t.gradients[i].pair;
    p.value = p.value.to(DType::f64) / k, p.reference = p.reference.to(DType::f64);
    if (!t.within(i, p)) return {};
  }
  return k;
}

bool is_about(double k, double number) { return std::abs(k / number - 1) < 1e-9; }

// "; 12 is the number of examples", "; 17 of 24 targets are not -100"
std::string number_in_batch(double k, const training::Examples& batch) {
  const auto is = [k](int64_t n) {
    return n > 1 && (is_about(k, static_cast<double>(n)) || is_about(1 / k, static_cast<double>(n)));
  };
  const int64_t examples = batch.inputs.rank() > 0 ? batch.inputs.size(0) : 1;
  if (is(examples)) return text("; ", examples, " is the number of examples");
  if (!batch.targets.defined()) return "";
  const int64_t targets = batch.targets.numel();
  if (is(targets)) return text("; ", targets, " is the number of targets");
  if (batch.targets.dtype() != DType::i64) return "";
  const auto counted = static_cast<int64_t>(training::weight_of_mean(batch).item());
  const double share = static_cast<double>(counted) / static_cast<double>(targets);
  if (is(counted)) return text("; ", counted, " is the number of targets that are not -100");
  return counted > 0 && counted < targets && (is_about(k, share) || is_about(1 / k, share))
             ? text("; ", counted, " of ", targets, " targets are not -100")
             : "";
}

NormSpec with_eps(NormSpec spec, double eps) {
  spec.eps = eps;
  return spec;
}

class Causes {
 public:
  Causes(Trial& t, Explained& found) : t_(t), found_(found) {}

  void run() {
    if (t_.spend(2) && t_.agree_again()) {
      found_.cause =
          "a model that does not repeat itself: with the same parameters, examples and seed, the two agree when they "
          "run again";
      return;
    }
    if (factor()) return;
    const Parting parting = where_they_part(t_);
    found_.place = parting.sentence;
    if (eps_of_pairs() || training_only() || stream()) return;
    norms_of(parting.path);
  }

 private:
  // True if the difference vanishes under a change, is there without it, and vanishes again. on(), off(): change the
  // models themselves, and change them back.
  bool removes(
      const std::string& name, const Setting& s, const std::string& sentence, const std::function<void()>& on = [] {},
      const std::function<void()>& off = [] {}, const std::string& but = "") {
    const int runs = s.changes_a + s.changes_b;
    const auto holds = [&] {
      on();
      bool agree = false;
      try {
        agree = t_.agree(s, but);
      } catch (const Error&) {  // the change does not fit the model
      }
      off();
      return agree;
    };
    if (!t_.spend(runs)) return false;
    if (std::find(found_.tried.begin(), found_.tried.end(), name) == found_.tried.end()) found_.tried.push_back(name);
    if (!holds() || !t_.spend(runs + 2) || t_.agree_again() || !holds()) return false;
    found_.cause = sentence;
    return true;
  }

  bool factor() {
    const auto k = shared_factor(t_);
    found_.tried.push_back("a common factor in the gradients");
    if (!k) return false;
    Pair scaled = t_.loss_pair.pair;
    scaled.value = scaled.value / *k;
    const std::string gradients = text("all ", t_.gradients.size(), " gradients of the second model are ",
                                       factor_text(*k), " times the first model's");
    if (!t_.loss_pair.differs)
      found_.cause = text("a factor in the backward: ", gradients, ", and the loss agrees");
    else if (t_.within_loss(scaled))
      found_.cause = text("a factor of the loss: the loss and ", gradients, number_in_batch(*k, t_.batch));
    return !found_.cause.empty();
  }

  // Norms whose gains are partners, or that have none and the same path.
  bool eps_of_pairs() {
    struct Both {
      std::string path, other;
      nn::Norm *a, *b;
    };
    std::vector<Both> differ;
    std::map<std::string, std::string> partner;
    for (size_t i = 0; i < t_.of_a.size(); ++i) partner[t_.of_a[i].name] = t_.of_b[i].name;
    std::map<std::string, nn::Norm*> others;
    for (const auto& [path, m] : t_.b.named_modules())
      if (auto* norm = dynamic_cast<nn::Norm*>(m)) others[path] = norm;
    const std::string weight = ".weight";
    for (const auto& [path, m] : t_.a.named_modules()) {
      auto* norm = dynamic_cast<nn::Norm*>(m);
      if (!norm) continue;
      const auto gain = partner.find(path + weight);
      std::string other = gain == partner.end() ? path : gain->second;
      if (gain != partner.end() && other.ends_with(weight)) other.resize(other.size() - weight.size());
      const auto at = others.find(other);
      if (at != others.end() && at->second->eps() != norm->eps()) differ.push_back({path, other, norm, at->second});
    }
    if (differ.empty()) return false;
    Setting s = t_.own;
    s.changes_b = true;
    std::vector<NormSpec> before;
    for (const Both& d : differ) before.push_back(d.b->spec());
    return removes(
        "the eps of norms", s,
        text("different eps: ", differ[0].path, " has ", differ[0].a->eps(), ", ", differ[0].other,
             " of the second model ", differ[0].b->eps(), differ.size() > 1 ? text(" (", differ.size(), " norms)") : "",
             "; with the first model's the two agree"),
        [&] {
          for (const Both& d : differ) d.b->set_spec(with_eps(d.b->spec(), d.a->eps()));
        },
        [&] {
          for (size_t i = 0; i < differ.size(); ++i) differ[i].b->set_spec(before[i]);
        });
  }

  bool training_only() {
    if (!t_.a.training() && !t_.b.training()) return false;
    Setting s = t_.own;
    s.changes_a = s.changes_b = true;
    std::vector<std::pair<nn::Module*, bool>> modes;
    for (nn::Module* model : {&t_.a, &t_.b})
      for (const auto& [_, m] : model->named_modules()) modes.emplace_back(m, m->training());
    const std::string now = t_.a.training() == t_.b.training() ? "differ in train()"
                            : t_.a.training() ? "differ because the second is in eval() and the first is not"
                                              : "differ because the first is in eval() and the second is not";
    return removes(
        "parts that act in training only", s,
        "a part that acts in training only, such as dropout: the two agree in eval() and " + now,
        [&] { t_.a.eval(), t_.b.eval(); },
        [&] {
          for (const auto& [m, on] : modes) m->train(on);  // outer ones first
        });
  }

  bool stream() {
    for (const StreamCause& c : stream_causes(t_))
      if (removes(c.name, c.setting, c.sentence, c.on, c.off, c.but)) return true;
    return false;
  }

  // The norm of A at `path` with another formula, then all norms of A.
  bool norms_of(const std::string& path) {
    std::vector<Located> all, here;
    std::set<const nn::Norm*> on_stream;
    for (const auto& [_, norm] : streams::norms_of(t_.a)) on_stream.insert(norm);
    for (const auto& [at, m] : t_.a.named_modules())
      if (auto* norm = dynamic_cast<nn::Norm*>(m); norm && !on_stream.contains(norm)) {
        all.push_back({at, norm});
        if (at == path || path.starts_with(at + '.')) here.push_back(all.back());
      }
    if (here.empty()) return false;
    for (const std::vector<Located>* some : {&here, &all}) {
      if (some == &all && all.size() == here.size()) continue;
      if (other_norms(*some)) return true;
    }
    return false;
  }

  struct Located {
    std::string path;
    nn::Norm* norm;
  };

  bool other_norms(const std::vector<Located>& norms) {
    const NormSpec before = norms[0].norm->spec();
    const auto width = static_cast<double>(norms[0].norm->width());
    const std::string where =
        norms.size() == 1 ? norms[0].path : text("all ", norms.size(), " norms of the first model");
    std::vector<nn::ModuleHookHandle> hooks;
    const auto with = [&](const std::string& name, const std::string& what,
                          const std::function<void(nn::Norm&)>& change, double more_gain = 0) {
      std::vector<NormSpec> specs;
      for (const Located& n : norms) specs.push_back(n.norm->spec());
      Setting s = t_.own;
      s.changes_a = true;
      if (more_gain != 0)
        for (size_t i = 0; i < t_.of_a.size(); ++i)
          for (const Located& n : norms)
            if (t_.of_a[i].name == n.path + ".weight") s.more_a[i] = full_like(s.point[i], more_gain);
      return removes(
          name, s, text(what, "; with the same in ", where, " the two agree"),
          [&] {
            for (const Located& n : norms) change(*n.norm);
          },
          [&] {
            for (size_t i = 0; i < norms.size(); ++i) norms[i].norm->set_spec(specs[i]);
            for (nn::ModuleHookHandle& hook : std::exchange(hooks, {})) hook.remove();
          });
    };
    if (before.kind == NormKind::layer || before.kind == NormKind::rms) {
      const NormKind other = before.kind == NormKind::layer ? NormKind::rms : NormKind::layer;
      if (with("another kind of norm", text("another norm: the second model computes ", name_of(other)),
               [other](nn::Norm& n) {
                 n.set_spec({other, n.eps(), n.spec().p});
               }))
        return true;
    }
    for (const double eps : {1e-5, 1e-6, 1e-8, 1e-12, 0.0, 1e-3})
      if (eps != before.eps &&
          with("another eps", text("another eps: the second model has ", eps, ", the first ", before.eps),
               [eps](nn::Norm& n) { n.set_spec(with_eps(n.spec(), eps)); }))
        return true;
    for (const double divisor : {width - 1, width + 1, 1.0})
      if (with("another divisor",
               text("another divisor: the second model divides by ", divisor, divisor == 1 ? " (a sum)" : "",
                    ", the first by ", width),
               [=, &hooks](nn::Norm& n) {
                 // c / sqrt(S / m + eps) = sqrt(m / n) c / sqrt(S / n + eps m / n)
                 const double factor = std::sqrt(divisor / width);
                 hooks.push_back(n.on_forward([factor, &n](const nn::Module&, const Tensor&, const Tensor& rows) {
                   const Tensor bias = n.bias();
                   return bias.defined() ? rows * factor + bias * (1 - factor) : rows * factor;
                 }));
                 n.set_spec(with_eps(n.spec(), n.eps() * divisor / width));
               }))
        return true;
    if (norms[0].norm->weight.defined())
      for (const double more : {1.0, -1.0})
        if (with(
                "a gain of gain + 1",
                text("another use of the gain: the second model multiplies by gain ", more > 0 ? "+ 1" : "- 1"),
                [](nn::Norm&) {}, more))
          return true;
    return false;
  }

  Trial& t_;
  Explained& found_;
};

}  // namespace

Explained explain_difference(Trial& trial) {
  Explained found;
  Causes(trial, found).run();
  return found;
}

}  // namespace isonorm::equivalence
