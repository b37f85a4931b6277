#include "equivalence/training.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "core/philox.h"

namespace isonorm::equivalence {

std::vector<Pair> Training::gradient_pairs(const Training& reference) const {
  NoGrad no_grad;
  double of_all = 0;
  for (const Tensor& g : reference.gradients_) of_all = larger(of_all, largest_entry(g));
  std::vector<Pair> pairs;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const Tensor &mine = gradients_[i], &theirs = reference.gradients_[i];
    const nn::Parameter& p = reference.parameters_[i];
    const auto scale = [&](const Tensor& g, bool blind) {
      const double own = largest_entry(g);
      return blind || own < noise_share_ * of_all ? of_all : own;
    };
    if (p.blind_end == p.blind_begin) {
      pairs.push_back({p.name, mine, theirs, scale(theirs, false)});
      continue;
    }
    for (const auto& [from, to] :
         {std::pair{int64_t{0}, p.blind_begin}, {p.blind_begin, p.blind_end}, {p.blind_end, theirs.size(0)}}) {
      if (to == from) continue;
      const Tensor a = narrow(mine, 0, from, to - from), b = narrow(theirs, 0, from, to - from);
      pairs.push_back({p.name, a, b, scale(b, from == p.blind_begin), from});
    }
  }
  return pairs;
}

std::vector<Pair> Training::weight_pairs(const Training& reference) const {
  std::vector<Pair> pairs;
  const size_t count = reference.parameters_.size();
  for (size_t i = 0; i < weights_.size(); ++i) {
    const Tensor theirs = reference_weight(reference, i);
    const std::string name = text(i < count ? "" : "average of ", reference.parameters_[i % count].name);
    pairs.push_back({name, weights_[i], theirs, largest_entry(theirs)});
  }
  return pairs;
}

namespace {
template <class T> void move_elements(const Tensor& p, uint64_t seed, uint64_t stream) {
  T* v = p.mutable_data<T>();
  for (int64_t i = 0; i < p.numel(); ++i) {
    const bool up = philox(seed, static_cast<uint64_t>(i), stream).word[0] & 1;
    v[i] = std::nextafter(v[i], up ? INFINITY : -INFINITY);
  }
}
}  // namespace

void move_by_one_ulp(nn::Module& model, uint64_t seed) {
  uint64_t stream = 0;
  for (const Tensor& p : model.parameters()) {
    check(p.dtype() == DType::f64 || p.dtype() == DType::f32, "move_by_one_ulp: dtype is ", p.dtype(),
          ", expected f32 or f64");
    if (p.dtype() == DType::f64)
      move_elements<double>(p, seed, stream++);
    else
      move_elements<float>(p, seed, stream++);
  }
}

}  // namespace isonorm::equivalence
