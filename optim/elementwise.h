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
  // The rule of one parameter's step, and its weight decay: coupled decay adds l2 w to the gradient; decoupled decay
  // multiplies w by `keep` before the step.
  struct Step {
    UpdateRule rule;
    double l2 = 0, keep = 1;
  };
  // The conditions on a group's options, and the tensors that each of its parameters keeps: `state` of the parameter's
  // shape with initial value `initial`, or what specs_of returns.
  struct Group {
    std::vector<Condition> conditions;
    std::vector<const char*> state = {};
    double initial = 0;
    std::function<std::vector<StateSpec>(const Tensor&)> specs_of = {};
  };

  ElementwiseOptimizer(const char* name, size_t parameters);
  ElementwiseOptimizer(ElementwiseOptimizer&&) noexcept;
  ElementwiseOptimizer& operator=(ElementwiseOptimizer&&) noexcept;
  // Throws if a condition does not hold.
  void add_group(const std::vector<Tensor>& parameters, double lr, const Group& group);
  // The rule for the parameters of `group` in their own step t = 1, 2, ...
  virtual Step step_of(int group, int64_t t) const = 0;
  // Hook to change the updates before they run, using measurements on whole tensors. stepped[i] is the parameter of
  // update i. An optimizer that changes the updates' numbers, or runs further updates, overrides replays().
  virtual void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped);
  void run(std::vector<kernels::Update>& updates) const;
  // The gradient in `dtype` times gradient_scale and gradient_factor.
  static Tensor scaled_gradient(const kernels::Update& update, DType dtype);
  // Sets the trust ratio of each update from the norms of `pairs`: for each update, a weight and the tensor to compare
  // it with.
  void set_trust(std::vector<kernels::Update>& updates, const std::vector<Tensor>& pairs,
                 const std::vector<kernels::TrustRatio>& ratios) const;

 private:
  void take_step(double gradient_scale, const Tensor& gradient_factor);

  std::vector<const Entry*> stepped_;
  std::vector<size_t> last_;  // indices of the entries that the last step changed
  double last_scale_ = 1;     // its gradient_scale
  std::vector<kernels::Update> updates_;
};

// An element-wise optimizer whose groups have options of one type, with an lr and a weight_decay. `Derived` has
//   static constexpr const char* kName                                   in error messages: "lion"
//   static Group group_of(const Options& options)
//   static Step step_with(const Options& options, double lr, int64_t t)  rule of a parameter's own step t = 1, 2, ...
// Its source instantiates the template, so that programs that use the optimizer do not compile it.
template <class Derived, class Options> class ElementwiseGroups : public ElementwiseOptimizer {
 public:
  explicit ElementwiseGroups(const std::vector<Tensor>& parameters, Options options = {})
      : ElementwiseGroups(std::vector<ParameterGroup<Options>>{{parameters, options}}) {}
  explicit ElementwiseGroups(const std::vector<ParameterGroup<Options>>& groups)
      : ElementwiseOptimizer(Derived::kName, count(groups)) {
    for (const auto& [parameters, o] : groups) add_group(parameters, o.lr, Derived::group_of(o)), options_.push_back(o);
  }

 protected:
  Step step_of(int group, int64_t t) const override { return Derived::step_with(options_[group], lr(group), t); }
  Tunable tunable(int group) override {
    Options& o = options_[group];
    if constexpr (requires { o.momentum; }) return {&o.weight_decay, &o.momentum};
    return {&o.weight_decay};
  }

  std::vector<Options> options_;
};

}  // namespace isonorm::optim
