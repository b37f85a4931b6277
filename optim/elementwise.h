// What the optimizers share whose steps end in an element-wise rule: one pass over memory for all parameters at once.
#pragma once

#include "core/formulas/update_rules.h"
#include "optim/optimizer.h"

namespace isonorm::kernels {
struct Update;  // core/kernels/optimizer.h
}

namespace isonorm::optim {

class ElementwiseOptimizer : public Optimizer {
 public:
  ~ElementwiseOptimizer() override;
  void step(double gradient_scale = 1) final;

 protected:
  // The rule of one parameter's step, and its weight decay: coupled, added to the gradient as l2 w; decoupled, w is
  // multiplied by `keep` first.
  struct Step {
    UpdateRule rule;
    double l2 = 0, keep = 1;
  };

  explicit ElementwiseOptimizer(const char* name);
  // What a parameter of `group` does in its own step t = 1, 2, ...
  virtual Step step_of(int group, int64_t t) const = 0;
  // May change the updates before they run, by what it measures on whole tensors. stepped[i] is whose update i is.
  virtual void prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped);
  void run(std::vector<kernels::Update>& updates) const;

 private:
  std::vector<const Entry*> stepped_;
  std::vector<kernels::Update> updates_;
};

}  // namespace isonorm::optim
