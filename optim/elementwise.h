// The common part of optimizers whose steps end in an element-wise rule: one pass over memory for all parameters at
// once.
#pragma once

#include "core/formulas/update_rules.h"
#include "optim/optimizer.h"

namespace isonorm::kernels {
struct TrustRatio;  // core/kernels/optimizer.h
}  // namespace isonorm::kernels

namespace isonorm::optim {

class ElementwiseOptimizer : public Optimizer {
 public:
  ~ElementwiseOptimizer() override;
  void step(double gradient_scale = 1) final { take_step(gradient_scale, {}); }
  void step_scaled(const Tensor& gradient_factor) final;
  bool replays() const override { return true; }
  bool by_entry() const override { return true; }
  std::vector<kernels::Update> advance() final;

 protected:
  // The rule of one parameter's step, and its weight decay: coupled, added to the gradient as l2 w; decoupled, w is
  // multiplied by `keep` first.
  struct Step {
    UpdateRule rule;
    double l2 = 0, keep = 1;
  };

  ElementwiseOptimizer(const char* name, size_t parameters);
  ElementwiseOptimizer(ElementwiseOptimizer&&) noexcept;
  ElementwiseOptimizer& operator=(ElementwiseOptimizer&&) noexcept;
  // The rule of a parameter of `group` in its own step t = 1, 2, ...
  virtual Step step_of(int group, int64_t t) const = 0;
  // May change the updates before they run, by measurements on whole tensors. An optimizer that changes their numbers,
  // or runs other updates, says so by replays(). stepped[i] is the parameter of update i.
  virtual void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped);
  void run(std::vector<kernels::Update>& updates) const;
  // The gradient in `dtype` times gradient_scale and gradient_factor.
  static Tensor scaled_gradient(const kernels::Update& update, DType dtype);
  // Gives each update its trust ratio, by the norms of `pairs`: each has a weight and the tensor to compare it with.
  void set_trust(std::vector<kernels::Update>& updates, const std::vector<Tensor>& pairs,
                 const std::vector<kernels::TrustRatio>& ratios) const;

 private:
  void take_step(double gradient_scale, const Tensor& gradient_factor);

  std::vector<const Entry*> stepped_;
  std::vector<size_t> last_;  // the parameters in the last step, by their number among the entries
  double last_scale_ = 1;     // gradient_scale of that
  std::vector<kernels::Update> updates_;
};

}  // namespace isonorm::optim
