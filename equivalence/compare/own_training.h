// A user's model under training, compared with another one through a parameter map.
#pragma once

#include <algorithm>

#include "core/random.h"
#include "equivalence/compare/compare.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

// The partner of a parameter of A, with B's tensors.
struct PartnerTensors {
  Partner partner = {};
  std::vector<Tensor> stored;

  // f(tensor) of each tensor, joined or cut as the partner is.
  template <class F> Tensor read(const F& f) const {
    std::vector<Tensor> all;
    for (const Tensor& t : stored) all.push_back(f(t));
    return partner.read(all);
  }
};

// Parameter and partner for every parameter of A that `map` gives a route, in A's order.
struct Partners {
  std::vector<streams::NamedParameter> a, b;  // b is the first part if A's is split
  std::vector<Route> routes;
  std::vector<PartnerTensors> tensors;  // of B, for each parameter of a
};

// Pairs the parameters. *reason says why A and B cannot be compared (empty if they can): a partner is missing, has
// another shape or dtype, or shares its memory with A; a parameter of B has no partner; a rule of the map
// decides about no parameter. Throws if a model is in mixed precision.
Partners partners(const nn::Module& a, const nn::Module& b, const ParameterMap& map, std::string* reason);

// The parameters of A that `map` gives no route.
std::vector<std::string> left_out(const nn::Module& a, const ParameterMap& map);

// B's parameters from A's, or from tensors in their place.
void carry_over(const Partners& p);
void carry_over(const std::vector<Tensor>& from, const Partners& p);

// Returns the parameters' dtype. Throws if it is not f64 or f32.
DType dtype_of(const Partners& p);

// Returns the seed of the change to the weights of control number `control` (from 1). With CompareOptions::seed = 1 the
// seeds are 1, 2, ..., as in a proof.
uint64_t control_seed(uint64_t seed, int control);

// Describes the cause of a difference if B has no gradient at all.
inline constexpr const char* kNoGradient =
    "a loss that passes no gradient to the second model: it does not use the model, or runs it without a graph";

// Runs run(). The message of an Error begins with "the first model: " or "the second model: ". Another std::exception
// is nested in an Error.
void with_model_named(Which which, const std::function<void()>& run);

// A model, an objective and, for training, an optimizer.
class OwnTraining : public Training {
 public:
  // A itself, and its controls. `seed`: the loss's random numbers begin there.
  OwnTraining(nn::Module& model, std::vector<streams::NamedParameter> parameters, const Objective& loss, uint64_t seed);
  // B.
  OwnTraining(nn::Module& model, const Partners& partners, const Objective& loss, uint64_t seed);

  void train_with(std::unique_ptr<optim::Optimizer> optimizer, double clip);
  // True if any parameter got a gradient from the last differentiate(), or the i-th one.
  bool has_gradient() const { return std::ranges::find(has_gradient_, true) != has_gradient_.end(); }
  bool has_gradient(size_t i) const { return has_gradient_[i]; }
  // How many of the model's parameters that are not frozen the optimizer holds, and how many there are.
  std::pair<int64_t, int64_t> held_by_optimizer() const;
  const optim::Optimizer& optimizer() const { return *optimizer_; }

  void differentiate(const training::Examples& batch) override;
  void update(double lr) override;  // the optimizer keeps its own rate
  nn::Module& model() override { return model_; }

 protected:
  Tensor reference_weight(const Training& reference, size_t i) const override;
  Tensor noise_here(const Training& reference, size_t i) const override;

 private:
  Which which() const { return routes_.empty() ? Which::first : Which::second; }

  nn::Module& model_;
  std::vector<Route> routes_;            // from the reference's parameters to these; empty if this is A
  std::vector<Dims> shapes_;             // of the reference's parameters
  std::vector<PartnerTensors> tensors_;  // of the model, one for each parameter of the reference
  Objective loss_of_;
  Generator generator_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  double clip_ = 0;
  std::vector<bool> has_gradient_;  // of each parameter of the reference
};

// Compares two runs of a model: same weights, buffers, examples and generator. Both have differentiated. Returns why
// the model is not repeatable: a loss or a gradient that deviates by more than bound(0) of criterion.h. Empty if it is
// repeatable, and if the first run has a NaN. Gradients below the share of OwnTraining::note_control() are rounding
// noise and do not count.
std::string not_repeatable(const char* model, const OwnTraining& once, const OwnTraining& again, DType dtype);

// The loss, or else the first parameter whose gradient has NaN or infinities: "loss is nan". Empty if all are finite.
std::string not_finite(const OwnTraining& run);

// Restores at its end: the values of parameters and buffers, the gradients, and every module's training flag.
class Restore {
 public:
  enum What { all, buffers };  // buffers: leaves the parameters unchanged
  explicit Restore(nn::Module& model, What what = all);
  ~Restore();
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  nn::Module& model_;
  TensorMap values_;                                  // copies of parameters and buffers
  std::vector<std::pair<Tensor, Tensor>> gradients_;  // parameter, its gradient
  std::vector<std::pair<nn::Module*, bool>> flags_;
};

// The distribution of drawn weights. Normal numbers take longer to draw than a small model's gradient takes.
enum class Spread { normal, uniform };
// New values for every parameter that is not frozen: s (1/2 + z) / sqrt(5/4) with z of mean 0 and variance 1, and s the
// root mean square of the present values (0.1 if that is 0) and of the new ones. A mean of 0 would hide differences.
void draw_parameters(const std::vector<Tensor>& parameters, Generator& generator, Spread spread = Spread::normal);
// Multiplies every entry of the parameters that are not frozen by 1 + u, u uniform in [-share, share].
void perturb_parameters(const std::vector<Tensor>& parameters, double share, Generator& generator);

}  // namespace isonorm::equivalence
