#include "equivalence/compare/trial.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "core/view.h"

namespace isonorm::equivalence {
namespace {

Setting setting_of(const Partners& p) {
  Setting s;
  for (const streams::NamedParameter& q : p.a) {
    s.point.push_back(detached::clone(q.tensor));
    s.of_a.push_back({q.name});
    s.more_a.emplace_back();
  }
  s.of_b = p.routes;
  return s;
}

// The parameters of `of` as `routes` of a point with the shapes of A's.
Partners as_partners(const Partners& p, const std::vector<streams::NamedParameter>& of,
                     const std::vector<Route>& routes) {
  return {p.a, of, routes};
}

bool is_gradient(const Seen& s) { return s.quantity == std::string_view("gradient"); }

}  // namespace

Trial::Trial(nn::Module& first, nn::Module& second, const Partners& p, const Objective& objective,
             const training::Examples& examples, uint64_t first_seed, std::span<const Seen> seen, int budget)
    : a(first),
      b(second),
      partners(p),
      loss(objective),
      batch(examples),
      seed(first_seed),
      dtype(dtype_of(p)),
      own(setting_of(p)),
      loss_(seen.front()),
      budget_(budget) {
  std::copy_if(seen.begin(), seen.end(), std::back_inserter(gradients_), is_gradient);
}

bool Trial::spend(int count) {
  if (budget_ < count) return false;
  budget_ -= count;
  return true;
}

std::unique_ptr<OwnTraining> Trial::run_a(const Setting& s) {
  const Restore restore(a);
  const Partners p = as_partners(partners, partners.a, s.of_a);
  carry_over(s.point, p);
  for (size_t i = 0; i < s.more_a.size(); ++i)
    if (s.more_a[i].defined()) copy_into(p.a[i].tensor, detach(p.a[i].tensor) + s.more_a[i]);
  auto run = std::make_unique<OwnTraining>(a, p, loss, seed);
  run->differentiate(batch);
  return run;
}

std::unique_ptr<OwnTraining> Trial::run_b(const Setting& s) {
  const Restore restore(b);
  const Partners p = as_partners(partners, partners.b, s.of_b);
  carry_over(s.point, p);
  auto run = std::make_unique<OwnTraining>(b, p, loss, seed);
  run->differentiate(batch);
  return run;
}

bool Trial::within(const OwnTraining& of_b, const OwnTraining& of_a, const std::string& but) const {
  const auto holds = [&](const Seen& bound, Pair pair) {
    const Seen now{bound.quantity, pair, offset(pair), bound.control};
    return now.share(dtype) <= 1;
  };
  if (!holds(loss_, loss_pair(of_b, of_a))) return false;
  std::vector<Pair> pairs = of_b.gradient_pairs(of_a);
  if (pairs.size() != gradients_.size()) return false;
  double largest = 0;
  for (const Pair& p : pairs) largest = larger(largest, p.scale);
  for (size_t k = 0; k < pairs.size(); ++k) {
    if (!has_factor(gradients_[k].pair)) pairs[k].scale = largest;  // rounding noise
    if (pairs[k].name != but && !holds(gradients_[k], pairs[k])) return false;
  }
  return true;
}

bool Trial::agree(const Setting& s, const std::string& but) {
  if (!own_a_ && !s.changes_a) own_a_ = run_a(own);
  if (!own_b_ && !s.changes_b) own_b_ = run_b(own);
  const auto a_run = s.changes_a ? run_a(s) : nullptr, b_run = s.changes_b ? run_b(s) : nullptr;
  return within(b_run ? *b_run : *own_b_, a_run ? *a_run : *own_a_, but);
}

bool Trial::agree_again() {
  own_a_ = run_a(own), own_b_ = run_b(own);
  return within(*own_b_, *own_a_, "");
}

}  // namespace isonorm::equivalence
