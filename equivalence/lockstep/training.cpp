#include "equivalence/lockstep/training.h"

#include <bit>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/formulas/philox.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {
constexpr double kItsOwnSize = 0.25;  // relative to the largest entry: note_control()

Tensor both(const Tensor& a, const Tensor& b) { return where(a, b, a); }  // of u8
}  // namespace

double Training::largest_gradient() const {
  double largest = 0;
  for (const Tensor& g : gradients_) largest = larger(largest, largest_entry(g));
  return largest;
}

std::vector<Pair> Training::gradient_parts(const Training& reference, std::vector<bool>& blind) const {
  NoGrad no_grad;
  std::vector<Pair> pairs;
  const auto add = [&](const Tensor& mine, const Tensor& theirs, const std::string& name, int64_t row, bool is_blind) {
    pairs.push_back({name, mine, theirs, largest_entry(theirs), row});
    blind.push_back(is_blind);
  };
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const Tensor &theirs = reference.gradients_[i], mine = to(gradients_[i], theirs.device());
    const streams::NamedParameter& p = reference.parameters_[i];
    if (p.blind_end == p.blind_begin) {
      add(mine, theirs, p.name, 0, false);
      continue;
    }
    for (const auto& [from, to] :
         {std::pair{int64_t{0}, p.blind_begin}, {p.blind_begin, p.blind_end}, {p.blind_end, theirs.size(0)}})
      if (to != from)
        add(narrow(mine, 0, from, to - from), narrow(theirs, 0, from, to - from), p.name, from, from == p.blind_begin);
  }
  return pairs;
}

std::vector<Pair> Training::gradient_pairs(const Training& reference) const {
  std::vector<bool> blind;
  std::vector<Pair> pairs = gradient_parts(reference, blind);
  const double of_all = reference.largest_gradient(), small = reference.noise_share_ * of_all;
  for (size_t k = 0; k < pairs.size(); ++k) {
    const bool moved = k < reference.moved_.size() && reference.moved_[k] >= kItsOwnSize;
    if (blind[k] || (moved && pairs[k].scale < small)) pairs[k].scale = of_all;
  }
  return pairs;
}

void Training::note_control(const Training& control) {
  if (noise_share_ == 0) return;
  std::vector<bool> blind;
  const std::vector<Pair> pairs = control.gradient_parts(*this, blind);
  moved_.resize(pairs.size());
  for (size_t k = 0; k < pairs.size(); ++k) moved_[k] = larger(moved_[k], deviation({pairs[k]}));

  NoGrad no_grad;
  const double most = noise_share_ * largest_gradient();
  noise_.resize(gradients_.size());
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const Tensor size = abs(gradients_[i]), move = abs(control.gradients_[i] - gradients_[i]);
    const double limit = std::min(largest_entry(move) / kItsOwnSize, most);
    const Tensor is = both(le(size, limit), gt(move, 0));
    noise_[i] = noise_[i].defined() ? where(noise_[i], noise_[i], is) : is;
  }
}

void Training::begin_step() {
  for (size_t i = 0; i < noise_.size(); ++i) noise_[i] = moved_by_noise(i);
  if (!noise_.empty()) noise_so_far_ = noise_;
  noise_.clear(), moved_.clear(), gradients_.clear();
}

Tensor Training::moved_by_noise(size_t i) const {
  return noise_so_far_.empty() ? noise_[i] : both(noise_so_far_[i], noise_[i]);
}

std::string Training::weight_name(const Training& reference, size_t i) const {
  const size_t count = reference.parameters_.size();
  return text(i < count ? "" : "average of ", reference.parameters_[i % count].name);
}

std::vector<Pair> Training::weight_pairs(const Training& reference) const {
  NoGrad no_grad;
  std::vector<Pair> pairs;
  for (size_t i = 0; i < weights_.size(); ++i) {
    Tensor theirs = reference_weight(reference, i), mine = to(weights_[i], theirs.device());
    if (i < reference.noise_.size() && entry_by_entry(i)) {
      const Tensor noise = reference.moved_by_noise(i), zero = zeros({}, theirs.options());
      theirs = where(noise, zero, theirs), mine = where(noise, zero, mine);
    }
    pairs.push_back({weight_name(reference, i), mine, theirs, largest_entry(theirs)});
  }
  return pairs;
}

namespace {
float next(float v, bool up) { return std::nextafter(v, up ? INFINITY : -INFINITY); }
double next(double v, bool up) { return std::nextafter(v, up ? INFINITY : -INFINITY); }
bf16 next(bf16 v, bool up) {  // of f32 with the same sign and exponent the upper half
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  return bf16(std::bit_cast<float>(up == (bits >> 31 == 0) ? bits + 0x10000 : bits - 0x10000));
}
}  // namespace

Tensor moved_by_ulps(const Tensor& x, uint64_t seed, uint64_t stream, int ulps) {
  return visit_floating(x.dtype(), "moved_by_ulps", [&]<class T>() {
    std::vector<T> v = x.to_vector<T>();
    for (size_t i = 0; i < v.size(); ++i) {
      const bool up = philox(seed, static_cast<uint64_t>(i), stream).word[0] & 1;
      for (int n = 0; n < ulps && static_cast<double>(v[i]) != 0; ++n) v[i] = next(v[i], up);
    }
    return from_vector(v, x.shape());
  });
}

void move_by_one_ulp(nn::Module& model, uint64_t seed) {
  uint64_t stream = 0;
  for (const Tensor& p : model.parameters()) {
    check(p.dtype() == DType::f64 || p.dtype() == DType::f32, "move_by_one_ulp: dtype is ", p.dtype(),
          ", expected f32 or f64");
    copy_into(p, moved_by_ulps(p, seed, stream++));
  }
}

}  // namespace isonorm::equivalence
