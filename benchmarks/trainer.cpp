#include "benchmarks/trainer.h"

#include "isonorm.h"

namespace isonorm::bench {
namespace {

std::unique_ptr<nn::Module> build(const Case& c, const TrainerOptions& options) {
  const nn::TransformerOptions t{.width = c.width,
                                 .depth = c.depth,
                                 .heads = c.heads,
                                 .head_width = c.head_width,
                                 .mlp_width = c.mlp,
                                 .activation = c.gelu_tanh ? nn::Activation::gelu_tanh : nn::Activation::gelu,
                                 .affine = options.affine,
                                 .precision = {options.precision}};
  const streams::StreamOptions stream{.form = options.form, .storage = options.storage};
  if (c.is_gpt())
    return std::make_unique<nn::Gpt>(
        streams::make<nn::Gpt>({.vocab = c.vocab, .context = c.context, .tied = c.tied, .transformer = t}, stream));
  return std::make_unique<nn::Vit>(streams::make<nn::Vit>(
      {.image = c.image, .channels = c.channels, .patch = c.patch, .classes = c.classes, .transformer = t}, stream));
}

// The loss; for a language model without materialised logits.
Tensor loss_of(nn::Module& model, const training::Examples& batch) {
  auto* gpt = dynamic_cast<nn::Gpt*>(&model);
  if (!gpt) return training::cross_entropy_of(model, batch);
  const Tensor rows = gpt->features(batch.inputs);
  const auto [weight, bias] = gpt->head();
  return linear_cross_entropy(rows, weight, bias, batch.targets);
}

}  // namespace

Trainer::Trainer(const Case& c, const TrainerOptions& options)
    : case_(c),
      options_(options),
      model_(build(c, options)),
      optimizer_(
          std::make_unique<optim::AdamW>(model_->parameters(), optim::AdamWOptions{.lr = 1e-3, .weight_decay = 0.1})),
      step_(*model_, *optimizer_, loss_of,
            {.limits = {.norm = 1},
             .activations = options.activations,
             .captured = options.captured,
             .group = options.group}) {
  // Scales tables to GPT-2's initial size: with a tied head, standard normal tables would make the softmax one-hot.
  for (const nn::NamedParameter& p : model_->named_parameters())
    if (p.name == "token.weight" || p.name.starts_with("position") || p.name == "cls")
      copy_into(p.tensor, mul(detach(p.tensor), 0.02));
  model_->to(options.dtype);
  model_->to(options.device);
  inputs_ = inputs(c.batch);
  targets_ =
      to(c.is_gpt() ? randint(0, c.vocab, {c.batch, c.context}) : randint(0, c.classes, {c.batch}), options.device);
}

Tensor Trainer::inputs(int64_t batch) const {
  if (case_.is_gpt()) return to(randint(0, case_.vocab, {batch, case_.context}), options_.device);
  return to(randn({batch, case_.image, case_.image, case_.channels}).to(options_.dtype), options_.device);
}

double Trainer::step() {
  prepare(false);
  return step_({inputs_, targets_}).loss;
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
