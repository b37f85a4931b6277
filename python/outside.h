// Internal: a model that another program runs, in the form that the library's comparisons need: losses, gradients,
// weights.
#pragma once

#include <nanobind/nanobind.h>

#include "equivalence/lockstep/training.h"

namespace isonorm::python {

// Its numbers come from a Python object:
//   differentiate() -> (loss, [Tensor])       a gradient for each name, in the reference's coordinates
//   update() -> ([Tensor], [Tensor], [name])  weights; the reference's weights in their form (None: they have it);
//                                             names
//   noise_here([Tensor]) -> [Tensor]          for weights that are computed from the reference's: u8, 1 for entries
//                                             that depend on an entry that only noise has moved. The argument holds
//                                             these marks for the reference
// A point needs no update().
class Outside : public equivalence::Training {
 public:
  // plain: the number of leading weights that correspond to the reference's entry by entry. Throws ValueError if
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
  struct Empty : nn::Module {  // carries the dtype
    explicit Empty(DType dtype);
  };

  nanobind::object side_;
  Empty model_;
  size_t plain_;
  std::vector<Tensor> expected_;  // empty: the reference's unchanged weights
  std::vector<std::string> weight_names_;
  mutable std::vector<Tensor> noise_;  // for the weights from plain_ on; computed on demand
};

// Adds Comparison, Points and train_together().
void bind_comparison(nanobind::module_& m);

}  // namespace isonorm::python
