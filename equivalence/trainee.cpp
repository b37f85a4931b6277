#include "equivalence/trainee.h"

#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/philox.h"
#include "equivalence/optimizers.h"
#include "equivalence/parametrisation.h"
#include "nn/gpt.h"
#include "nn/vit.h"
#include "optim/clip.h"

namespace isonorm::equivalence {
namespace {

nn::TransformerOptions transformer_options(const ProofOptions& o, const nn::Stream& stream) {
  return {.width = o.width,
          .depth = o.depth,
          .heads = o.heads,
          .mlp_width = o.mlp,
          .affine = o.affine,
          .eps = o.eps,
          .stream = stream.form(),
          .storage = stream.storage()};
}

double largest(const Tensor& x) { return x.numel() == 0 ? 0 : amax(abs(x)).item(); }

// max |a - b| / scale; 0 where both are the same and nothing sets a scale.
double relative(const Tensor& a, const Tensor& b, double scale) {
  const double difference = largest(a - b);
  return difference == 0 ? 0 : difference / scale;
}

}  // namespace

std::unique_ptr<nn::Module> build_model(const ProofOptions& o, const ModelShape& shape, const nn::Stream& stream) {
  const nn::TransformerOptions t = transformer_options(o, stream);
  std::unique_ptr<nn::Module> model;
  if (o.model == ModelKind::vit)
    model = std::make_unique<nn::Vit>(nn::VitOptions{.image = shape.image,
                                                     .channels = shape.channels,
                                                     .patch = o.patch,
                                                     .classes = shape.classes,
                                                     .transformer = t});
  else
    model = std::make_unique<nn::Gpt>(nn::GptOptions{.vocab = shape.vocab, .context = o.context, .transformer = t});
  model->to(o.dtype);
  return model;
}

Trainee::Trainee(const ProofOptions& o, const ModelShape& shape, const Variant& variant)
    : options_(o),
      variant_(variant),
      stream_(variant.form, o.width, variant.storage),
      model_(build_model(o, shape, stream_)),
      parameters_(model_->named_parameters()) {
  const auto make = [&](const std::vector<Tensor>& tensors) {
    std::vector<nn::Parameter> parameters = parameters_;
    for (size_t i = 0; i < tensors.size(); ++i) parameters[i].tensor = tensors[i];
    return build_optimizer(o, parameters);
  };
  if (variant.gradients == GradientRule::lifted)
    lifted_ = std::make_unique<Lifted>(parameters_, stream_, make);
  else
    own_ = make(model_->parameters());
}

void Trainee::start_from(const nn::Module& raw) {
  model_->load_state_dict(mapped_state(raw, stream_));
  project(parameters_, variant_.start);
}

Tensor Trainee::compared_gradient(const nn::Parameter& p) const {
  const Tensor g = raw_gradient(gradient(p.tensor), p, stream_);
  const bool recentred = stream_.parameter_width() == stream_.width() && p.role == nn::Role::writer &&
                         (variant_.gradients != GradientRule::as_is || variant_.after_step == Projection::writers);
  return recentred ? nn::recentre(g, p.stream_dim) : g;
}

void Trainee::differentiate(const Examples& batch) {
  for (const nn::Parameter& p : parameters_) set_gradient(p.tensor, {});
  const Tensor loss = cross_entropy((*model_)(batch.inputs), batch.targets);
  backward(loss);
  loss_ = loss.item();
  gradients_.clear();
  NoGrad no_grad;
  for (const nn::Parameter& p : parameters_) gradients_.push_back(compared_gradient(p));
}

// L2 of the loss, then clipping; returns the factor that clips the global norm. differentiate() kept the gradients for
// the comparison: what changes them in place gets copies.
double Trainee::limit_gradients(const std::vector<Tensor>& parameters) const {
  if (options_.loss_l2 > 0 || options_.clip_value > 0)
    for (const Tensor& p : parameters) {
      const Tensor g = gradient(p);
      if (!g.defined()) continue;
      const Tensor copy = empty_like(g);
      copy_into(copy, g);
      set_gradient(p, copy);
    }
  if (options_.loss_l2 > 0) optim::add_l2(parameters, options_.loss_l2);
  if (options_.clip_value > 0) optim::clip_grad_value(parameters, options_.clip_value);
  return options_.clip > 0 ? optim::clip_factor(optim::gradient_norm(parameters), options_.clip) : 1;
}

void Trainee::update(double lr) {
  if (variant_.gradients == GradientRule::metric) correct_gradients(parameters_, stream_);
  if (lifted_) lifted_->lift();
  optim::Optimizer& optimizer = lifted_ ? lifted_->optimizer() : *own_;
  optimizer.set_lr(lr);
  const double scale = limit_gradients(optimizer.parameters());
  if (lifted_)
    lifted_->step(scale);
  else
    optimizer.step(scale);
  project(parameters_, variant_.after_step);
  weights_.clear();
  for (const nn::Parameter& p : parameters_) weights_.push_back(visible_weight(p, stream_, !options_.affine));
}

double Trainee::gradient_deviation(const Trainee& reference) const {
  NoGrad no_grad;
  double worst = 0, scale_of_all = 0;
  for (const Tensor& g : reference.gradients_) scale_of_all = std::max(scale_of_all, largest(g));
  const auto take = [&](double d) { worst = larger(worst, d); };
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const Tensor &mine = gradients_[i], &theirs = reference.gradients_[i];
    const int64_t begin = reference.parameters_[i].blind_begin, end = reference.parameters_[i].blind_end;
    if (end == begin) {
      take(relative(mine, theirs, largest(theirs)));
      continue;
    }
    for (const auto& [from, to] : {std::pair{int64_t{0}, begin}, {begin, end}, {end, theirs.size(0)}}) {
      const Tensor a = narrow(mine, 0, from, to - from), b = narrow(theirs, 0, from, to - from);
      if (to > from) take(relative(a, b, from == begin ? scale_of_all : largest(b)));
    }
  }
  return worst;
}

double Trainee::weight_deviation(const Trainee& reference) const {
  NoGrad no_grad;
  double worst = 0;
  for (size_t i = 0; i < weights_.size(); ++i)
    worst = larger(worst, relative(weights_[i], reference.weights_[i], largest(reference.weights_[i])));
  return worst;
}

namespace {
template <class T> void move_elements(const Tensor& p, uint64_t seed, uint64_t stream) {
  T* v = p.mutable_data<T>();
  for (int64_t i = 0; i < p.numel(); ++i) {
    const bool up = philox(seed, static_cast<uint64_t>(i), stream).word[0] & 1;
    v[i] = std::nextafter(v[i], up ? INFINITY : -INFINITY);
  }
}
}  // namespace

void move_by_one_ulp(nn::Module& model, uint64_t seed) {
  uint64_t stream = 0;
  for (const Tensor& p : model.parameters()) {
    check(p.dtype() == DType::f64 || p.dtype() == DType::f32, "move_by_one_ulp: dtype is ", p.dtype(),
          ", expected f32 or f64");
    if (p.dtype() == DType::f64)
      move_elements<double>(p, seed, stream++);
    else
      move_elements<float>(p, seed, stream++);
  }
}

}  // namespace isonorm::equivalence
