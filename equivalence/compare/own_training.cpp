#include "equivalence/compare/own_training.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"
#include "core/view.h"
#include "equivalence/causes/cause.h"
#include "equivalence/compare/inputs_and_buffers.h"
#include "equivalence/judge/criterion.h"
#include "optim/clip.h"
#include "streams/parametrize.h"
#include "training/model_options.h"
#include "training/steps/loop.h"

namespace isonorm::equivalence {
namespace {

// Throws if a listed model computes in another dtype than its parameters' dtype.
void check_one_dtype(const nn::Module& m) {
  const auto options = training::ModelOptions::of(m);
  const auto parameters = m.parameters();
  if (options && !parameters.empty() && parameters[0].dtype() == DType::f32)
    training::check_full_precision(options->transformer().precision, "compare");
}

}  // namespace

Partners partners(const nn::Module& a, const nn::Module& b, const ParameterMap& map, std::string* reason) {
  Partners found;
  const std::vector<streams::NamedParameter> all = streams::named_parameters(b);
  std::vector<bool> reached(all.size());
  const auto fail = [&](const std::string& why) {
    if (reason->empty()) *reason = why;
  };
  reason->clear();
  if (&a == &b) fail("a model was compared with itself");
  for (const nn::Module* m : {&a, &b}) check_one_dtype(*m);
  const std::vector<streams::NamedParameter> first = streams::named_parameters(a);
  std::vector<std::string> names;
  for (const streams::NamedParameter& p : first) names.push_back(p.name);
  if (const std::string unused = map.unused(names); !unused.empty())
    fail(text("the map's rule ", unused,
              " fits no parameter of the first model, or only parameters that an earlier rule takes"));
  const auto shape_in_a = [&](const std::string& name) -> std::optional<Dims> {
    for (const streams::NamedParameter& p : first)
      if (p.name == name) return p.tensor.shape();
    return {};
  };
  for (const streams::NamedParameter& p : first) {
    const auto route = map.route(p.name);
    if (!route) continue;
    PartnerTensors tensors{Partner(*route, p.name, shape_in_a), {}};
    for (const std::string& name : route->partners()) {
      const auto at = std::ranges::find(all, name, &streams::NamedParameter::name);
      if (at == all.end()) {
        fail(text("the second model has no parameter ", name, ", which ", p.name, " of the first becomes"));
        break;
      }
      if (tensors.stored.empty()) found.b.push_back(*at);
      tensors.stored.push_back(at->tensor);
      reached[static_cast<size_t>(at - all.begin())] = true;
      if (p.tensor.dtype() != at->tensor.dtype())
        fail(text(p.name, " is ", name_of(p.tensor.dtype()), ", the second model's ", name, " ",
                  name_of(at->tensor.dtype())));
      if (p.tensor.impl().storage == at->tensor.impl().storage)
        fail(text(p.name, " shares its memory with the second model's ", name, ": a model was compared with itself"));
    }
    if (!reason->empty()) continue;
    const Dims shape = route->forward(p.tensor.shape()), partner = tensors.read(detach).shape();
    if (!(shape == partner))
      fail(text(p.name, " becomes ", shape, ", the second model's ", route->partner_name(), " has shape ", partner));
    found.a.push_back(p);
    found.routes.push_back(*route);
    found.tensors.push_back(std::move(tensors));
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (!reached[i])
      fail(shape_in_a(all[i].name) && !map.route(all[i].name)
               ? text("the map leaves out ", all[i].name,
                      ", which both models have: leave_out() is for parameters of the first model alone")
               : text("no parameter of the first model becomes ", all[i].name, " of the second"));
  if (found.a.empty()) fail("no parameters were compared");
  return found;
}

std::vector<std::string> left_out(const nn::Module& a, const ParameterMap& map) {
  std::vector<std::string> names;
  for (const streams::NamedParameter& p : streams::named_parameters(a))
    if (!map.route(p.name)) names.push_back(p.name);
  return names;
}

uint64_t control_seed(uint64_t seed, int control) { return ((seed - 1) << 32) + static_cast<uint64_t>(control); }

void carry_over(const Partners& p) {
  std::vector<Tensor> from;
  for (const streams::NamedParameter& q : p.a) from.push_back(detach(q.tensor));
  carry_over(from, p);
}

void carry_over(const std::vector<Tensor>& from, const Partners& p) {
  NoGrad no_grad;
  for (size_t i = 0; i < from.size(); ++i)
    p.tensors[i].partner.write(p.routes[i].forward(from[i]), p.tensors[i].stored);
}

DType dtype_of(const Partners& p) {
  const DType dtype = p.a[0].tensor.dtype();
  check(dtype == DType::f64 || dtype == DType::f32, "compare: ", p.a[0].name, " is ", dtype, ", expected f32 or f64");
  return dtype;
}

void with_model_named(Which which, const std::function<void()>& run) {
  const char* const model = which == Which::first ? "the first model: " : "the second model: ";
  try {
    run();
  } catch (Error& e) {
    e.set_message(model + std::string(e.what()));
    throw;
  } catch (const std::exception& e) {
    std::throw_with_nested(Error(ErrorKind::invalid, model + std::string(e.what()), __FILE__, __LINE__));
  }
}

OwnTraining::OwnTraining(nn::Module& model, std::vector<streams::NamedParameter> parameters, const Objective& loss,
                         uint64_t seed)
    : model_(model), loss_of_(loss), generator_{seed, 0} {
  parameters_ = std::move(parameters);
  for (const streams::NamedParameter& p : parameters_) tensors_.push_back({{}, {p.tensor}});
  noise_share_ = parameters_.empty() ? 0 : 1000 * epsilon(parameters_[0].tensor.dtype());
  least_share_ = kLeastShare;
}

OwnTraining::OwnTraining(nn::Module& model, const Partners& partners, const Objective& loss, uint64_t seed)
    : OwnTraining(model, partners.b, loss, seed) {
  routes_ = partners.routes;
  tensors_ = partners.tensors;
  for (const streams::NamedParameter& p : partners.a) shapes_.push_back(p.tensor.shape());
}

void OwnTraining::train_with(std::unique_ptr<optim::Optimizer> optimizer, double clip) {
  check(optimizer != nullptr, "compare_trajectories: make_optimizer gave no optimizer");
  optimizer_ = std::move(optimizer);
  clip_ = clip;
}

std::pair<int64_t, int64_t> OwnTraining::held_by_optimizer() const {
  const std::vector<Tensor> own = optimizer_->parameters();
  int64_t held = 0, all = 0;
  for (const Tensor& p : model_.parameters()) {
    if (!requires_grad(p)) continue;
    ++all;
    held += std::ranges::any_of(own, [&](const Tensor& q) { return &q.impl() == &p.impl(); });
  }
  return {held, all};
}

void OwnTraining::differentiate(const training::Examples& batch) {
  with_model_named(which(), [&] {
    try {
      const SameDraws draws(generator_);
      loss_ = training::differentiate(model_, loss_of_, batch);
    } catch (Error& e) {
      e.set_message(e.what() + stream_hint(model_, e.what()));
      throw;
    }
  });
  NoGrad no_grad;
  begin_step();
  has_gradient_.clear();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    has_gradient_.push_back(
        std::ranges::any_of(tensors_[i].stored, [](const Tensor& p) { return p.grad().defined(); }));
    const Tensor g =
        tensors_[i].read([](const Tensor& p) { return p.grad().defined() ? p.grad() : zeros(p.shape(), p.options()); });
    const Tensor seen = routes_.empty() ? g : routes_[i].adjoint(g, shapes_[i]);
    // The optimizer's step() may clip, sign or centre gradients in place: a copy is compared.
    gradients_.push_back(optimizer_ ? detached::clone(seen) : seen);
  }
}

void OwnTraining::update(double) {
  with_model_named(
      which(), [&] { optimizer_->step(training::limit_gradients({.norm = clip_}, optimizer_->parameters()).scale); });
  weights_.clear();
  for (const PartnerTensors& p : tensors_) weights_.push_back(p.read(detach));
}

Tensor OwnTraining::reference_weight(const Training& reference, size_t i) const {
  NoGrad no_grad;
  const Tensor w = Training::reference_weight(reference, i);
  return routes_.empty() ? w : routes_[i].forward(w);
}

Tensor OwnTraining::noise_here(const Training& reference, size_t i) const {
  const Tensor noise = Training::noise_here(reference, i);
  if (routes_.empty() || routes_[i].legs.empty() || !noise.defined()) return noise;
  NoGrad no_grad;
  Generator generator{1, 0};  // a map of marks of 1 might give 0
  const Tensor marks = noise.to(DType::f64) * (1 + rand(noise.shape(), {DType::f64}, generator));
  return ne(routes_[i].forward(marks), zeros({}, {DType::f64}));
}

std::string not_repeatable(const char* model, const OwnTraining& once, const OwnTraining& again, DType dtype) {
  const auto because = [&](const auto&... what) {
    return text("the ", model, " model is not repeatable: run twice with the same weights on the same examples, its ",
                what..., " (state that a forward changes, or draws from another generator than the default one)");
  };
  const double limit = bound(0, dtype);
  if (std::abs(again.loss() - once.loss()) > limit * std::abs(once.loss()))
    return because("loss is ", number_text(once.loss()), " and then ", number_text(again.loss()));
  const std::vector<Pair> pairs = again.gradient_pairs(once);
  double largest = 0;
  for (const Pair& p : pairs) largest = larger(largest, p.scale);
  for (const Pair& p : pairs)
    if (p.scale > 1000 * epsilon(dtype) * largest && deviation({p}) > limit) {
      const EntryPlace place = *furthest_off({p});
      return because("gradient of ", place.tensor, place.index.rank > 0 ? text(place.index) : "", " is ",
                     number_text(place.reference), " and then ", number_text(place.value));
    }
  return "";
}

std::string not_finite(const OwnTraining& run) {
  if (!std::isfinite(run.loss())) return text("loss is ", number_text(run.loss()));
  for (const Pair& p : run.gradient_pairs(run))
    if (!training::is_finite(p.value)) return text("gradient of ", p.name, " is not finite");
  return "";
}

Restore::Restore(nn::Module& model, What what)
    : model_(model), values_(detached::clone(what == all ? model.state_dict() : buffers_of(model))) {
  for (const Tensor& p : model.parameters()) gradients_.emplace_back(p, p.grad());
  for (const auto& [_, m] : model.named_modules()) flags_.emplace_back(m, m->training());
}

Restore::~Restore() {
  NoGrad no_grad;
  for (const nn::NamedParameter& s : model_.named_state())  // a forward may have assigned another tensor to a buffer
    if (const Tensor* value = values_.find(s.name)) copy_into(s.tensor, *value);
  for (const auto& [parameter, gradient] : gradients_) set_grad(parameter, gradient);
  for (const auto& [module, training] : flags_) module->train(training);  // outer ones first
}

void draw_parameters(const std::vector<Tensor>& parameters, Generator& generator, Spread spread) {
  NoGrad no_grad;
  for (const Tensor& p : parameters) {
    if (p.numel() == 0 || !requires_grad(p)) continue;
    const double size = norm(detach(p)).item() / std::sqrt(static_cast<double>(p.numel()));
    const double scale = (size > 0 && std::isfinite(size) ? size : 0.1) / std::sqrt(1.25), widest = std::sqrt(3);
    const auto draw = [&] {
      if (spread == Spread::normal) return (randn(p.shape(), p.options(), generator) + 0.5) * scale;
      return rand(p.shape(), p.options(), generator) * (2 * widest * scale) + (0.5 - widest) * scale;
    };
    copy_into(p, draw());
  }
}

void perturb_parameters(const std::vector<Tensor>& parameters, double share, Generator& generator) {
  NoGrad no_grad;
  for (const Tensor& p : parameters)
    if (requires_grad(p)) copy_into(p, detach(p) * (1 + share * (2 * rand(p.shape(), p.options(), generator) - 1)));
}

}  // namespace isonorm::equivalence
