// Evaluation mode in one thread, like NoGrad (autograd/grad_mode.h) for recording.
#pragma once

namespace isonorm::nn {

// While it lives, modules that this thread runs are in evaluation mode: their training() is false, whatever train()
// set. No module is written to, so several threads may evaluate one model at the same time. If a backward recomputes a
// block (TransformerStack::recompute()), the block is in the mode of its forward.
class EvaluationMode {
 public:
  // on = false: modules are in the mode that train() set, also within another EvaluationMode.
  [[nodiscard]] explicit EvaluationMode(bool on = true);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

  static bool is_on();  // in this thread

 private:
  bool before_;
};

}  // namespace isonorm::nn
