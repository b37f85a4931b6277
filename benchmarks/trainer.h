// A benchmark case's model, its fixed random batch, and one training step on it.
#pragma once

#include <memory>

#include "benchmarks/cases.h"
#include "nn/module.h"
#include "nn/stream.h"
#include "optim/optimizer.h"

namespace isonorm::bench {

class Trainer {
 public:
  Trainer(const Case& c, nn::StreamForm form);

  // Forward, loss, backward, clipping at a gradient norm of 1, AdamW. Returns the loss [].
  Tensor step();

  int64_t parameter_count() const { return model_->parameter_count(); }

 private:
  Tensor loss();

  std::unique_ptr<nn::Module> model_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Tensor inputs_, targets_;
};

}  // namespace isonorm::bench
