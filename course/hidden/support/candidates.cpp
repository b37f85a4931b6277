#include "hidden/support/candidates.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>
#include <utility>

using namespace isonorm;

namespace course {
namespace {

NormWeights leaves(const NormWeights& w) {
  return {w.gain.clone().require_grad(), w.bias.clone().require_grad(), w.eps};
}

}  // namespace

NormUnderTest differentiated(const Formula& f) {
  return {[f](const Tensor& x, const NormWeights& w) { return f(x, w); },
          [f](const Tensor& x, const NormWeights& w, const Tensor& dy) -> NormGradients {
            const Tensor at = x.clone().require_grad();
            const NormWeights v = leaves(w);
            const auto g = grad(f(at, v), {at, v.gain, v.bias}, dy);
            return {g[0], g[1], g[2]};
          }};
}

NormUnderTest affine(const Normalise& f) {
  return differentiated([f](const Tensor& x, const NormWeights& w) { return f(x, w.eps) * w.gain + w.bias; });
}

NormUnderTest with_backward(const Normalise& f, decltype(NormUnderTest::backward) backward) {
  return {affine(f).forward, std::move(backward)};
}

double share_rejected(const std::function<bool(const NormUnderTest&)>& accepts, const Candidates& right,
                      const Candidates& wrong) {
  std::vector<std::pair<const Candidate*, bool>> all;  // in an order that the test cannot know
  for (const Candidate& c : right) all.emplace_back(&c, true);
  for (const Candidate& c : wrong) all.emplace_back(&c, false);
  std::shuffle(all.begin(), all.end(), std::mt19937(std::random_device()()));
  std::set<const Candidate*> survivors;  // in the order of `wrong`
  for (const auto& [candidate, is_right] : all) {
    bool accepted = false;
    try {
      accepted = accepts(candidate->norm);
    } catch (const std::exception&) {  // a test that throws does not accept
      if (is_right) throw;
    }
    if (!accepted && is_right) {
      std::printf("rejected, and right: %s\n", candidate->name.c_str());
      return 0;
    }
    if (accepted && !is_right) survivors.insert(candidate);
  }
  int shown = 0;
  for (const Candidate* c : survivors)
    if (shown++ < 5) std::printf("accepted, and wrong: %s\n", c->name.c_str());
  const size_t rejected = wrong.size() - survivors.size();
  std::printf("%zu of %zu wrong ones rejected\n", rejected, wrong.size());
  return static_cast<double>(rejected) / static_cast<double>(wrong.size());
}

}  // namespace course
