#include "hidden/support/candidates.h"

#include <cstdio>

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
  for (const Candidate& c : right)
    if (!accepts(c.norm)) {
      std::printf("rejected, and right: %s\n", c.name.c_str());
      return 0;
    }
  size_t rejected = 0;
  for (const Candidate& c : wrong) {
    bool accepted = false;
    try {
      accepted = accepts(c.norm);
    } catch (const std::exception&) {  // a test that stops has not accepted
    }
    rejected += !accepted;
    if (accepted) std::printf("accepted, and wrong: %s\n", c.name.c_str());
  }
  std::printf("%zu of %zu wrong ones rejected\n", rejected, wrong.size());
  return static_cast<double>(rejected) / static_cast<double>(wrong.size());
}

}  // namespace course
