#include "equivalence/compare/own_trial.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "core/view.h"

namespace isonorm::equivalence {

OwnTrial::OwnTrial(nn::Module& first, nn::Module& second, const Partners& p, const Objective& objective,
                   const training::Examples& examples, uint64_t first_seed, std::span<const ComparedTensor> compared,
                   int budget)
    : Trial(first, second, objective, examples, first_seed), partners_(p), loss_(compared.front()), budget_(budget) {
  dtype = dtype_of(p);
  of_a = p.a, of_b = p.b;
  for (size_t i = 0; i < p.a.size(); ++i) {
    mapped.push_back(p.routes[i].acts());
    own.point.push_back(detached::clone(p.a[i].tensor));
  }
  own.more_a.resize(p.a.size());
  own.no_mean_a.assign(p.a.size(), -1), own.no_mean_b = own.no_mean_a;
  const auto trial_pair = [&](const ComparedTensor& s) {
    return TrialPair{s.pair, s.share(dtype) > 1, !has_factor(s.pair)};
  };
  loss_pair = trial_pair(loss_);
  for (const ComparedTensor& s : compared) {
    if (s.quantity != std::string_view("gradient") || s.secondary) continue;
    gradients_.push_back(s);
    gradients.push_back(trial_pair(s));
  }
}

bool OwnTrial::spend(int count) {
  if (budget_ < count) return false;
  budget_ -= count;
  return true;
}

std::unique_ptr<OwnTraining> OwnTrial::run(const Setting& s, bool second) {
  nn::Module& model = second ? b : a;
  const Restore restore(model);
  Partners p = partners_;
  if (!second) p.b = p.a;
  for (size_t i = 0; i < p.routes.size(); ++i) {
    if (!second) p.routes[i] = {p.a[i].name}, p.tensors[i] = {{}, {p.a[i].tensor}};
    const int axis = second ? s.no_mean_b[i] : s.no_mean_a[i];
    if (axis >= 0) p.routes[i].legs.push_back({"recentre", axis});
  }
  carry_over(s.point, p);
  if (!second) {
    NoGrad no_grad;
    for (size_t i = 0; i < s.more_a.size(); ++i)
      if (s.more_a[i].defined()) copy_into(p.a[i].tensor, detach(p.a[i].tensor) + s.more_a[i]);
  }
  auto run = std::make_unique<OwnTraining>(model, p, loss, seed);
  run->differentiate(batch);
  return run;
}

bool OwnTrial::holds(const ComparedTensor& bound, const Pair& pair) const {
  return ComparedTensor{bound.quantity, pair, offset(pair), bound.control}.share(dtype) <= 1;
}

bool OwnTrial::within_all(const OwnTraining& second, const OwnTraining& first, const std::string& but) const {
  if (!within_loss(second.loss_pair(first))) return false;
  std::vector<Pair> pairs = second.gradient_pairs(first);
  if (pairs.size() != gradients_.size()) return false;
  double largest = 0;
  for (const Pair& p : pairs) largest = larger(largest, p.scale);
  for (size_t k = 0; k < pairs.size(); ++k) {
    if (gradients[k].noise) pairs[k].scale = largest;
    if (pairs[k].name != but && !within(k, pairs[k])) return false;
  }
  return true;
}

bool OwnTrial::agree(const Setting& s, const std::string& but) {
  if (!own_a_ && !s.changes_a) own_a_ = run(own, false);
  if (!own_b_ && !s.changes_b) own_b_ = run(own, true);
  const auto first = s.changes_a ? run(s, false) : nullptr, second = s.changes_b ? run(s, true) : nullptr;
  return within_all(second ? *second : *own_b_, first ? *first : *own_a_, but);
}

bool OwnTrial::agree_again() {
  own_a_ = run(own, false), own_b_ = run(own, true);
  return within_all(*own_b_, *own_a_, "");
}

void OwnTrial::keep(const std::function<void()>& f) {
  const Restore restore_a(a), restore_b(b);
  f();
}

}  // namespace isonorm::equivalence
