// A user's model under training, compared with another one through a parameter map.
#pragma once

#include "core/random.h"
#include "equivalence/compare/compare.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

// What stands in B for a parameter of A, with B's tensors.
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
  std::vector<streams::NamedParameter> a, b;  // of a split, b is the first part
  std::vector<Route> routes;
  std::vector<PartnerTensors> tensors;  // of B, for each parameter of a
};

// Why A and B cannot be compared, in *reason (empty where they can): a partner that is missing, has another shape or
// dtype, or shares its memory with A; a parameter of B that nothing goes to; a rule of the map that fits no parameter. Throws
// where a model is in mixed precision.
Partners partners(const nn::Module& a, const nn::Module& b, const ParameterMap& map, std::string* reason);

// B's parameters from A's.
void carry_over(const Partners& p);

// The dtype of all parameters. Throws where it is not f64 or f32.
DType dtype_of(const Partners& p);

// A model, an objective and, for training, an optimizer.
class OwnTraining : public Training {
 public:
  // A itself, and its controls. `seed` is where the loss begins to draw.
  OwnTraining(nn::Module& model, std::vector<streams::NamedParameter> parameters, const Objective& loss, uint64_t seed);
  // B.
  OwnTraining(nn::Module& model, const Partners& partners, const Objective& loss, uint64_t seed);

  void train_with(std::unique_ptr<optim::Optimizer> optimizer, double clip);

  void differentiate(const training::Examples& batch) override;
  void update(double lr) override;  // the optimizer keeps its own rate
  nn::Module& model() override { return model_; }

 protected:
  Tensor reference_weight(const Training& reference, size_t i) const override;
  bool entry_by_entry(size_t i) const override { return routes_.empty() || routes_[i].legs.empty(); }

 private:
  nn::Module& model_;
  std::vector<Route> routes_;            // from the reference's parameters to these; none where this is A
  std::vector<Dims> shapes_;             // of the reference's parameters
  std::vector<PartnerTensors> tensors_;  // of the model, one for each parameter of the reference
  Objective loss_of_;
  Generator generator_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  double clip_ = 0;
};

// Puts the values of all parameters and buffers, the gradients, and the training flags of all modules back when it
// ends.
class Restore {
 public:
  explicit Restore(nn::Module& model);
  ~Restore();
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> values_;     // parameter or buffer, copy
  std::vector<std::pair<Tensor, Tensor>> gradients_;  // parameter, its gradient
  std::vector<std::pair<nn::Module*, bool>> flags_;
};

// New values for every parameter: s (1/2 + z) / sqrt(5/4) with z standard normal, and s, the root mean square of the
// present ones (0.1 where that is 0), theirs too. What a mean hides is then there.
void draw_parameters(nn::Module& model, Generator& generator);

}  // namespace isonorm::equivalence
