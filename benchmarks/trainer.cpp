#include "benchmarks/trainer.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/fused/linear_cross_entropy.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "nn/gpt.h"
#include "nn/vit.h"
#include "optim/adamw.h"
#include "optim/clip.h"

namespace isonorm::bench {
namespace {

std::unique_ptr<nn::Module> build(const Case& c, const TrainerOptions& options) {
  const nn::TransformerOptions t{.width = c.width,
                                 .depth = c.depth,
                                 .heads = c.heads,
                                 .affine = options.affine,
                                 .stream = options.form,
                                 .storage = options.storage};
  if (c.is_gpt())
    return std::make_unique<nn::Gpt>(
        nn::GptOptions{.vocab = c.vocab, .context = c.context, .tied = c.tied, .transformer = t});
  return std::make_unique<nn::Vit>(nn::VitOptions{
      .image = c.image, .channels = c.channels, .patch = c.patch, .classes = c.classes, .transformer = t});
}

}  // namespace

Trainer::Trainer(const Case& c, const TrainerOptions& options)
    : case_(c),
      model_(build(c, options)),
      activations_(options.activations),
      parameters_(model_->parameters()),
      optimizer_(std::make_unique<optim::AdamW>(parameters_, optim::AdamWOptions{.lr = 1e-3, .weight_decay = 0.1})) {
  // Tables of the size that GPT-2 starts with: with a tied head, standard normal ones would make the softmax one-hot.
  for (const nn::Parameter& p : model_->named_parameters())
    if (p.name == "token.weight" || p.name.starts_with("position") || p.name == "cls")
      copy_into(p.tensor, mul(detach(p.tensor), 0.02));
  inputs_ = inputs(c.batch);
  targets_ = c.is_gpt() ? randint(0, c.vocab, {c.batch, c.context}) : randint(0, c.classes, {c.batch});
}

Tensor Trainer::inputs(int64_t batch) const {
  if (case_.is_gpt()) return randint(0, case_.vocab, {batch, case_.context});
  return randn({batch, case_.image, case_.image, case_.channels});
}

Tensor Trainer::loss() {
  auto* gpt = dynamic_cast<nn::Gpt*>(model_.get());
  if (!gpt) return cross_entropy((*model_)(inputs_), targets_);
  const Tensor rows = gpt->features(inputs_);
  const auto [weight, bias] = gpt->head();
  return linear_cross_entropy(rows, weight, bias, targets_);
}

Tensor Trainer::step() {
  prepare(false);
  const SaveActivations kept_as(activations_);
  optimizer_->zero_grad();
  const Tensor value = loss();
  backward(value);
  optimizer_->step(optim::clip_factor(optim::gradient_norm(parameters_), 1.0));
  return value;
}

void Trainer::prepare(bool on) {
  if (prepared_ != on) model_->prepare_inference(on);
  prepared_ = on;
}

Tensor Trainer::infer(int64_t batch) {
  const NoGrad no_grad;
  prepare(true);
  Tensor& x = inference_inputs_[batch];
  if (!x.defined()) x = inputs(batch);
  return (*model_)(x);
}

}  // namespace isonorm::bench
