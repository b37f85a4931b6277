// Internal: a model that another program runs, as the library's comparisons see one: its losses, gradients and weights.
#pragma once

#include <nanobind/nanobind.h>

#include "equivalence/lockstep/training.h"

namespace isonorm::python {

// Its numbers come from an object of Python:
//   differentiate() -> (loss, [Tensor])          one tensor a name, in the reference's coordinates
//   update() -> ([Tensor], [Tensor], [name])     weights, what the reference's would be here (None: they are as they are), and
//                                                their names
//   noise_here([Tensor]) -> [Tensor]             of the weights that are computed from the reference's: entries that depend on
//                                                one that noise alone has moved (u8), from the same of the reference's weights
// Neither is asked for what the object does not have to say: a point needs no update().
class Outside : public equivalence::Training {
 public:
  // `plain`: of how many weights, from the first on, entry i of the one is entry i of the other. Throws ValueError where
  // `dtype` is neither f64 nor f32.
  Outside(nanobind::object side, const std::vector<std::string>& names, DType dtype, size_t plain);

  void differentiate(const training::Examples&) override;
  void update(double) override;
  nn::Module& model() override { return model_; }

 protected:
  Tensor reference_weight(const equivalence::Training& reference, size_t i) const override {
    return expected_.empty() ? Training::reference_weight(reference, i) : expected_[i];
  }
  std::string weight_name(const equivalence::Training&, size_t i) const override { return weight_names_[i]; }
  Tensor noise_here(const Training& reference, size_t i) const override;

 private:
  struct Empty : nn::Module {  // says the dtype
    explicit Empty(DType dtype);
  };

  nanobind::object side_;
  Empty model_;
  size_t plain_;
  std::vector<Tensor> expected_;  // empty: the reference's own
  std::vector<std::string> weight_names_;
  mutable std::vector<Tensor> noise_;  // of the weights from plain_ on; empty until they are asked for
};

// Adds Comparison, Points and train_together().
void bind_comparison(nanobind::module_& m);

}  // namespace isonorm::python
