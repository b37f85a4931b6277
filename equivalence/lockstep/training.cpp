#include "equivalence/lockstep/training.h"

#include <bit>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/formulas/philox.h"
#include "core/system/parallel.h"
#include "core/view.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {
constexpr double kItsOwnSize = 0.25;  // relative to the largest entry: note_control()

Tensor both(const Tensor& a, const Tensor& b) { return where(a, b, a); }  // for u8
}  // namespace

Tensor Training::Part::of(const std::vector<Tensor>& gradients) const {
  const Tensor& g = gradients[parameter];
  return begin == end ? g : detached::narrow(g, 0, begin, end - begin);
}

std::vector<Training::Part> Training::parts() const {
  std::vector<Part> all;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const streams::NamedParameter& p = parameters_[i];
    if (p.blind_end == p.blind_begin) {
      all.push_back({i, 0, 0, false});
      continue;
    }
    for (const auto& [from, to] :
         {std::pair{int64_t{0}, p.blind_begin}, {p.blind_begin, p.blind_end}, {p.blind_end, gradients_[i].size(0)}})
      if (to != from) all.push_back({i, from, to, from == p.blind_begin});
  }
  return all;
}

const std::vector<double>& Training::sizes() const {
  if (sizes_.empty())
    for (const Part& part : parts()) sizes_.push_back(largest_entry(part.of(gradients_)));
  return sizes_;
}

double Training::largest_gradient() const {
  double largest = 0;
  for (double size : sizes()) largest = larger(largest, size);
  return largest;
}

Pair Training::loss_pair(const Training& reference) const {
  const double size = std::abs(reference.loss_);
  return {"", from_vector(std::vector{loss_}, {}), from_vector(std::vector{reference.loss_}, {}),
          larger(size, reference.least_share_ * reference.first_loss_)};
}

std::vector<Pair> Training::gradient_pairs(const Training& reference) const {
  const std::vector<double>&sizes = reference.sizes(), &first = reference.first_sizes_;
  const double of_all = reference.largest_gradient(), small = reference.noise_share_ * of_all;
  double first_of_all = 0;
  for (double size : first) first_of_all = larger(first_of_all, size);
  std::vector<Pair> pairs;
  for (const Part& part : reference.parts()) {
    const size_t k = pairs.size();
    const Tensor theirs = part.of(reference.gradients_), mine = to(part.of(gradients_), theirs.device());
    const bool moved = k < reference.moved_.size() && reference.moved_[k] >= kItsOwnSize;
    const bool zero = part.blind || (moved && sizes[k] < small);
    const double before = zero ? first_of_all : k < first.size() ? first[k] : 0;
    pairs.push_back({reference.parameters_[part.parameter].name, mine, theirs,
                     larger(zero ? of_all : sizes[k], reference.least_share_ * before), part.begin});
  }
  return pairs;
}

void Training::note_control(const Training& control, bool entries) {
  if (noise_share_ == 0) return;
  const std::vector<Part> all = parts();
  const double most = noise_share_ * largest_gradient();
  moved_.resize(all.size());
  for (size_t k = 0; k < all.size(); ++k) {
    if (sizes()[k] >= most) continue;  // too large for noise, however far it moves
    const Tensor mine = all[k].of(gradients_), theirs = to(all[k].of(control.gradients_), mine.device());
    moved_[k] = larger(moved_[k], deviation({{"", theirs, mine, sizes()[k]}}));
  }
  if (!entries) return;

  NoGrad no_grad;
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
  first_sizes_.resize(std::max(first_sizes_.size(), sizes_.size()));
  for (size_t k = 0; k < sizes_.size(); ++k)
    if (first_sizes_[k] == 0) first_sizes_[k] = sizes_[k];
  if (first_loss_ == 0) first_loss_ = std::abs(loss_);
  noise_.clear(), moved_.clear(), gradients_.clear(), sizes_.clear();
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

// The next number of type T above or below v. Zeros, infinities and NaN stay.
template <class T> T next(T v, bool up) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  if (v == T{} || !std::isfinite(static_cast<double>(v))) return v;
  const Bits bits = std::bit_cast<Bits>(v), sign = bits >> (8 * sizeof(T) - 1);
  return std::bit_cast<T>(static_cast<Bits>(up == (sign == 0) ? bits + 1 : bits - 1));
}

// Moves x, a contiguous CPU tensor.
void move_in_place(const Tensor& x, uint64_t seed, uint64_t stream, int ulps) {
  visit_floating(x.dtype(), "moved_by_ulps", [&]<class T>() {
    T* const v = x.mutable_data<T>();
    parallel_for(x.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const bool up = philox(seed, static_cast<uint64_t>(i), stream).word[0] & 1;
        for (int n = 0; n < ulps; ++n) v[i] = next(v[i], up);
      }
    });
  });
}

}  // namespace

Tensor moved_by_ulps(const Tensor& x, uint64_t seed, uint64_t stream, int ulps) {
  const Tensor y = detached::clone(to(detach(x), kCpu));
  move_in_place(y, seed, stream, ulps);
  return y;
}

void move_by_one_ulp(nn::Module& model, uint64_t seed) {
  uint64_t stream = 0;
  for (const Tensor& p : model.parameters()) {
    check(p.dtype() == DType::f64 || p.dtype() == DType::f32, "move_by_one_ulp: dtype is ", p.dtype(),
          ", expected f32 or f64");
    const bool in_place = p.device() == kCpu && p.is_contiguous();
    const Tensor moved = in_place ? p : detached::contiguous(to(detach(p), kCpu));
    move_in_place(moved, seed, stream++, 1);
    if (!in_place) copy_into(p, moved);
  }
}

}  // namespace isonorm::equivalence
