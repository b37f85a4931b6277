// An exponential moving average of the weights, for evaluation or as the result.
#pragma once

#include "core/tensor_map.h"

namespace isonorm::optim {

struct EmaOptions {
  double decay = 0.999;
  bool warmup = false;  // decay min(decay, (1 + t) / (10 + t)) at update t = 1, 2, ..., to forget the initial weights
};

// average = decay average + (1 - decay) w, from a copy of the weights at construction. Polyak and Juditsky,
// "Acceleration of Stochastic Approximation by Averaging", 1992; the exponential form and its warm-up are tf.train's
// ExponentialMovingAverage. Parameters of f32, f64 or bf16 on one device; averages of bf16 are kept in f32.
//
//   optim::Ema ema(model.parameters(), {.decay = 0.999});
//   ... opt.step(); ema.update(); ...
//   ema.apply();    // the model now computes with the averages
//   ...             // evaluate
//   ema.restore();  // bit for bit the weights from before
class Ema {
 public:
  // Throws on an undefined or non-contiguous parameter, and if decay is outside [0, 1).
  explicit Ema(const std::vector<Tensor>& parameters, EmaOptions options = {});

  // Adds the current weights to the averages. Throws between apply() and restore(). Also throws, naming the parameter,
  // if to() or replace() has changed a parameter's dtype, device or shape since construction.
  void update();
  // Saves the weights and puts the averages into the parameters, in place. Throws if that is done already.
  void apply();
  // Puts the saved weights back. Throws if apply() was not called.
  void restore();

  // One per parameter, in order; the next update changes them.
  const std::vector<Tensor>& averages() const { return averages_; }

  // A copy of the state: "step" (i64, updates so far) and "<i>.average". Throws between apply() and restore(), when
  // the parameters hold the averages.
  TensorMap state_dict() const;
  // state_dict() without the copy, to write a file: the next update changes the averages.
  TensorMap live_state() const;
  // Takes over a copy of this state; averaging continues bit-equal. Throws, and changes nothing, if a name is missing
  // or unknown, if a shape or dtype differs, and between apply() and restore().
  void load_state_dict(const TensorMap& state);

 private:
  EmaOptions options_;
  std::vector<Tensor> parameters_, averages_;
  std::vector<Tensor> aside_;  // the saved weights, between apply() and restore()
  int64_t steps_ = 0;
};

}  // namespace isonorm::optim
