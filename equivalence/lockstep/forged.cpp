#include "equivalence/lockstep/forged.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "nn/gpt.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

bool makes_embeddings(const streams::NamedParameter& p) {
  return !p.name.starts_with("blocks.") && !p.name.starts_with("head.") && !p.name.starts_with("norm.");
}
bool belongs_to_norm(const streams::NamedParameter& p) { return p.name.find("norm") != std::string::npos; }

}  // namespace

Forged::Forged(const training::TrainingOptions& o, const Variant& variant, Forgery forgery, double size)
    : Trainee(o, variant), forgery_(forgery), size_(size) {
  if (of_ranks(forgery)) falsify(forgery);
}

void Forged::exchange_batch(int step, training::Examples examples) {
  exchanged_ = step;
  instead_ = std::move(examples);
}

void Forged::start_from(const nn::Module& raw) {
  Trainee::start_from(raw);
  if (forgery_ == Forgery::centred_entry)
    for (const streams::NamedParameter& p : streams::named_parameters(model()))
      if (makes_embeddings(p)) copy_into(detach(p.tensor), streams::recentre(detach(p.tensor), p.stream_dim));
  if (forgery_ != Forgery::weight && forgery_ != Forgery::row) return;
  const NoGrad no_grad;
  const Tensor w = model().state_dict().at("blocks.0.mlp.fc2.weight"), row = select(w, 0, 0);
  if (forgery_ == Forgery::row)
    copy_into(row, row * (1 + size_));
  else
    copy_into(narrow(row, 0, 0, 1), narrow(row, 0, 0, 1) + size_ * largest_entry(w));
}

void Forged::differentiate(const training::Examples& batch) {
  const bool wrong = forgery_ == Forgery::batch && instead_ && taken_ == exchanged_;
  Trainee::differentiate(wrong ? *instead_ : batch);
  if (forgery_ != Forgery::frozen_gains) return;
  for (const streams::NamedParameter& p : streams::named_parameters(model()))
    if (belongs_to_norm(p)) set_grad(p.tensor, {});
}

Tensor Forged::forward(const Tensor& inputs) {
  if (forgery_ != Forgery::uncorrected_head) return Trainee::forward(inputs);
  auto& gpt = dynamic_cast<nn::Gpt&>(model());
  return linear(gpt.features(inputs), streams::named_parameters(gpt).front().tensor, {});
}

}  // namespace isonorm::equivalence
