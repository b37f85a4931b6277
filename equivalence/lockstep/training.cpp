#include "equivalence/lockstep/training.h"

#include <bit>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/formulas/philox.h"
#include "core/view.h"
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

void Training::note_control(const Training& control, bool entries) {
  if (noise_share_ == 0) return;
  std::vector<bool> blind;
  const std::vector<Pair> pairs = control.gradient_parts(*this, blind);
  moved_.resize(pairs.size());
  for (size_t k = 0; k < pairs.size(); ++k) moved_[k] = larger(moved_[k], deviation({pairs[k]}));
  if (!entries) return;

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

std::vector<Tensor> Training::moved_by_noise() const {
  std::vector<Tensor> all;
  for (size_t i = 0; i < noise_.size(); ++i) all.push_back(moved_by_noise(i));
  return all;
}

Tensor Training::noise_here(const Training& reference, size_t i) const {
  return i < reference.noise_.size() ? reference.moved_by_noise(i) : Tensor();
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
    if (const Tensor noise = noise_here(reference, i); noise.defined() && any(noise).item() != 0) {
      const Tensor zero = zeros({}, theirs.options());
      theirs = where(noise, zero, theirs), mine = where(noise, zero, mine);
    }
    pairs.push_back({weight_name(reference, i), mine, theirs, largest_entry(theirs)});
  }
  return pairs;
}

namespace {

// The number of T next above or below v. Zeros, infinities and NaN stay.
template <class T> T next(T v, bool up) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  if (v == T{} || !std::isfinite(static_cast<double>(v))) return v;
  const Bits bits = std::bit_cast<Bits>(v), sign = bits >> (8 * sizeof(T) - 1);
  return std::bit_cast<T>(static_cast<Bits>(up == (sign == 0) ? bits + 1 : bits - 1));
}

std::vector<uint8_t> drawn_directions(int64_t count, uint64_t seed, uint64_t stream) {
  std::vector<uint8_t> up(static_cast<size_t>(count));
  for (size_t i = 0; i < up.size(); ++i) up[i] = philox(seed, i, stream).word[0] & 1;
  return up;
}

// Moves x, a contiguous CPU tensor.
void move_in_place(const Tensor& x, const std::vector<uint8_t>& up, int ulps) {
  visit_floating(x.dtype(), "moved_by_ulps", [&]<class T>() {
    T* const v = x.mutable_data<T>();
    for (size_t i = 0; i < up.size(); ++i)
      for (int n = 0; n < ulps; ++n) v[i] = next(v[i], up[i]);
  });
}

}  // namespace

Tensor moved_by_ulps(const Tensor& x, uint64_t seed, uint64_t stream, int ulps) {
  const Tensor y = detached::clone(to(detach(x), kCpu));
  move_in_place(y, drawn_directions(x.numel(), seed, stream), ulps);
  return y;
}

UlpMoves::UlpMoves(const nn::Module& model, uint64_t seed) {
  for (const Tensor& p : model.parameters()) {
    check(p.dtype() == DType::f64 || p.dtype() == DType::f32, "move_by_one_ulp: dtype is ", p.dtype(),
          ", expected f32 or f64");
    up_.push_back(drawn_directions(p.numel(), seed, up_.size()));
  }
}

void UlpMoves::apply(const nn::Module& model) const {
  const std::vector<Tensor> parameters = model.parameters();
  check(parameters.size() == up_.size(), "move_by_one_ulp: moves of ", up_.size(), " parameters, the model has ",
        parameters.size());
  for (size_t i = 0; i < up_.size(); ++i) {
    const Tensor &p = parameters[i], here = p.device() == kCpu ? p : to(detach(p), kCpu);
    move_in_place(here, up_[i], 1);
    if (p.device() != kCpu) copy_into(p, here);
  }
}

void move_by_one_ulp(nn::Module& model, uint64_t seed) { UlpMoves(model, seed).apply(model); }

}  // namespace isonorm::equivalence
