// A training that runs in lockstep with others: the interface that proofs, the grid and comparisons of a user's own
// models share.
#pragma once

#include "core/random.h"
#include "equivalence/judge/pairs.h"
#include "nn/module.h"
#include "streams/parametrize.h"
#include "training/steps/examples.h"

namespace isonorm::equivalence {

// During the lifetime of this object the default generator continues at `mine`. Afterwards the default generator has
// its former state, and `mine` is advanced by a fixed distance. At each step every training of a lockstep draws the
// same dropout masks, however many numbers it draws.
class SameDraws {
 public:
  explicit SameDraws(Generator& mine) : mine_(mine), draws_(mine) {}
  ~SameDraws() { mine_.offset += uint64_t{1} << 40; }
  SameDraws(const SameDraws&) = delete;
  SameDraws& operator=(const SameDraws&) = delete;

 private:
  Generator& mine_;
  const DrawsFrom draws_;
};

// The value of least_share_ for two programs that may compute a loss differently. 64 eps, the least bound, are then 4
// eps of the first size: the terms of the loss have this size, and each program rounds two or three.
inline constexpr double kLeastShare = 1.0 / 16;

// A model, and the quantities that are compared after each half of a step. Two trainings are compared parameter by
// parameter, in the order of the reference's parameters and in its coordinates.
class Training {
 public:
  virtual ~Training() = default;

  // Forward, loss, backward: fills the loss and the gradients.
  virtual void differentiate(const training::Examples& batch) = 0;
  // Updates at rate `lr`: fills the weights.
  virtual void update(double lr) = 0;
  virtual nn::Module& model() = 0;

  double loss() const { return loss_; }

  // Loss and gradients (after differentiate) and weights (after update), paired with the values of `reference`. The
  // loss is relative to its size, a tensor to its largest entry. If the gradient is zero in exact arithmetic (blind
  // rows, and rounding noise found by note_control()), it is relative to the largest entry of any gradient. Weights
  // that noise alone has moved since the first step are 0 on both sides: the function does not see them.
  //
  // A loss or gradient that has fallen since the first step (at which it was not 0) is relative to at least
  // least_share_ of its size there. A small loss is a difference of large terms (a log-sum of exponentials and a
  // logit), and its gradient is one too (a probability and 1). They keep the rounding of the terms.
  Pair loss_pair(const Training& reference) const;
  std::vector<Pair> gradient_pairs(const Training& reference) const;
  std::vector<Pair> weight_pairs(const Training& reference) const;
  double gradient_deviation(const Training& reference) const { return deviation(gradient_pairs(reference)); }
  double weight_deviation(const Training& reference) const { return deviation(weight_pairs(reference)); }

  // Learns from a control which gradients of this reference are rounding noise, after both have differentiated. A
  // tensor below noise_share_ of the largest gradient entry is noise if any control moves it by at least a quarter of
  // its own largest entry: no digit of it is reliable. A gradient that is zero in exact arithmetic is a sum of rounding
  // errors, and an ulp changes every error: key biases of 22 architectures at 20 points moved by 0.6 or more under a
  // control (of four), everything else by at most 140 eps. (A test repeats it at fewer points.) A single entry is
  // noise, too, if some control moves it and it is at most four times the farthest move in its tensor. An entry that is
  // 0 in all runs is exact. Only weight_pairs() asks for entries.
  void note_control(const Training& control, bool entries = true);
  // Per parameter, 1 if noise alone has moved the weight, this step included (u8). Empty without controls.
  std::vector<Tensor> moved_by_noise() const;

 protected:
  // Returns the reference's tensor for parameter i in the form in which these weights are stored.
  virtual Tensor reference_weight(const Training& reference, size_t i) const { return reference.weights_[i]; }
  // Returns the name of parameter i.
  virtual std::string weight_name(const Training& reference, size_t i) const;
  // 1 for entries of the stored weights i that depend on an entry of the reference that noise alone has
  // moved (u8). Undefined if the reference has no controls.
  virtual Tensor noise_here(const Training& reference, size_t i) const;
  // Call after the loss of a step is known. Forgets gradients and the controls' findings about them, but keeps the
  // first sizes, and the entries that were not noise.
  void begin_step();

  std::vector<streams::NamedParameter> parameters_;  // in the order of the reference's
  double loss_ = 0;
  std::vector<Tensor> gradients_, weights_;  // one for each parameter; averages follow the weights
  // A tensor whose gradient is smaller than this share of the largest gradient can be rounding noise.
  double noise_share_ = 0;
  // The least share of its first size that a loss or gradient is relative to: 0 or kLeastShare.
  double least_share_ = 0;
  // For each part of the gradients that can be rounding noise: how far the controls moved it, relative to its largest
  // entry.
  std::vector<double> moved_;

 private:
  Tensor moved_by_noise(size_t i) const;
  // A gradient that is compared as a whole: of a parameter, or of some rows if others are blind.
  struct Part {
    size_t parameter;
    int64_t begin, end;  // rows; 0 and 0: all
    bool blind;

    Tensor of(const std::vector<Tensor>& gradients) const;
  };
  std::vector<Part> parts() const;
  // The largest entry of each part.
  const std::vector<double>& sizes() const;
  double largest_gradient() const;

  // One for each parameter, u8: entries that are noise at this step, and at every step so far. Empty without controls.
  std::vector<Tensor> noise_, noise_so_far_;
  mutable std::vector<double> sizes_;  // empty until sizes() is called
  std::vector<double> first_sizes_;    // of the first step before this one at which they were not 0
  double first_loss_ = 0;
};

// Returns x with every element moved by `ulps` units in the last place, up or down at random by `seed` and `stream`. 0
// stays 0: no rounding error has the size of its ulp. f64, f32, bf16.
Tensor moved_by_ulps(const Tensor& x, uint64_t seed, uint64_t stream, int ulps = 1);

// Moves every element of a control run's parameters to the next number above or below, chosen at random by `seed`. f64
// and f32.
void move_by_one_ulp(nn::Module& model, uint64_t seed);

}  // namespace isonorm::equivalence
