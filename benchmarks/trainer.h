// A benchmark case's model, its fixed random batches, one training step and one inference on them.
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
  DType activations = DType::f32;                 // what the backward needs of the forward is kept in; f32 or bf16
  DType dtype = DType::f32;                       // of parameters and activations
  nn::Precision precision = nn::Precision::full;  // of products, where the parameters are f32
  Device device = kCpu;
  bool affine = true;                   // learned gain and bias in the norms, as PyTorch's nn.LayerNorm has them
  bool captured = false;                // steps of a GPU are a CUDA graph from the third on
  distributed::Group* group = nullptr;  // ranks that take the step together
};

class Trainer {
 public:
  explicit Trainer(const Case& c, const TrainerOptions& options = {});

  // Forward, loss, backward, clipping at a gradient norm of 1, AdamW. Returns the loss. The device may have work left.
  double step();
  // The logits of `batch` samples, without recording a graph, by the model prepared for inference.
  Tensor infer(int64_t batch);

  int64_t parameter_count() const { return model_->parameter_count(); }

 private:
  Tensor inputs(int64_t batch) const;
  void prepare(bool on);  // for inference; at most once between two training steps

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
