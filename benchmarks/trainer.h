// A benchmark case: its model, fixed random batches, one training step and one inference on them.
#pragma once

#include <map>
#include <memory>

#include "benchmarks/cases.h"
#include "nn/module.h"
#include "nn/precision.h"
#include "optim/optimizer.h"
#include "streams/stream.h"
#include "training/steps/step.h"

namespace isonorm::bench {

struct TrainerOptions {
  streams::Form form = streams::Form::layer_norm;
  streams::Stored storage = streams::Stored::raw;
  DType activations = DType::f32;                 // dtype of the forward values that the backward needs; f32 or bf16
  DType dtype = DType::f32;                       // of parameters and activations
  nn::Precision precision = nn::Precision::full;  // of products, if the parameters are f32
  Device device = kCpu;
  bool affine = true;                   // learned gain and bias in the norms, as PyTorch's nn.LayerNorm has them
  bool captured = false;                // GPU steps are a CUDA graph from the third on
  distributed::Group* group = nullptr;  // ranks that share the step
};

class Trainer {
 public:
  explicit Trainer(const Case& c, const TrainerOptions& options = {});

  // Forward, loss, backward, clipping at a gradient norm of 1, AdamW. Returns the loss. The device may still be
  // working.
  double step();
  // The logits for `batch` samples, from the model prepared for inference, without a graph.
  Tensor infer(int64_t batch);

  int64_t parameter_count() const { return model_->parameter_count(); }

 private:
  Tensor inputs(int64_t batch) const;
  void prepare(bool on);  // for inference; called at most once between two training steps

  Case case_;
  TrainerOptions options_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  training::Step step_;
  Tensor inputs_, targets_;
  std::map<int64_t, Tensor> inference_inputs_;  // by batch
  bool prepared_ = false;
};

}  // namespace isonorm::bench
