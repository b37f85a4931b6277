#include "equivalence/grid/expectation.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "equivalence/coordinates/parametrisation.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/made_examples.h"
#include "equivalence/lockstep/training.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

constexpr int kPoints = 3;
constexpr uint64_t kMovedCopies = 4;
constexpr double kMoved = 0.1;       // standard deviation of the change of a point's weights
constexpr double kLeastSeen = 1e-6;  // least change of the logits by a direction that is seen

// The logits of the model on a stream of `form` with these raw weights; parameters of role `centred` lose their mean.
Tensor logits(const training::TrainingOptions& o, const TensorMap& raw, const Tensor& inputs, streams::Form form,
              streams::Role centred = streams::Role::neutral, uint64_t moved = 0) {
  const NoGrad no_grad;
  const auto model = build_model(o, {.form = form});
  model->load_state_dict(raw);
  for (const streams::NamedParameter& p : streams::named_parameters(*model))
    if (p.role == centred && centred != streams::Role::neutral)
      copy_into(p.tensor, streams::recentre(p.tensor, p.stream_dim));
  if (moved > 0) move_by_one_ulp(*model, moved);
  Generator same{o.seed, uint64_t{1} << 62};
  const SameDraws draws(same);  // for dropout
  return (*model)(inputs);
}

double relative(const Tensor& value, const Tensor& reference) {
  return deviation({Pair{.name = "logits", .value = value, .reference = reference, .scale = largest_entry(reference)}});
}

// The largest mean along the stream of a writer's gradient, relative to its largest entry.
double gradient_mean(const training::TrainingOptions& o, const TensorMap& raw, const training::Examples& examples) {
  const auto model = build_model(o, {.form = streams::Form::rms_norm, .storage = streams::Stored::mapped});
  model->load_state_dict(raw);
  project(streams::named_parameters(*model), Projection::writers_and_readers);
  {
    Generator same{o.seed, uint64_t{1} << 62};
    const SameDraws draws(same);
    backward(cross_entropy((*model)(examples.inputs), examples.targets));
  }
  const NoGrad no_grad;
  double most = 0;
  for (const streams::NamedParameter& p : streams::named_parameters(*model)) {
    if (p.role != streams::Role::writer) continue;
    const Tensor g = p.tensor.grad();
    if (!g.defined()) continue;
    most = larger(most, relative(streams::recentre(g, p.stream_dim), g));
  }
  return most;
}

// True if the deviation is more than rounding explains. Throws if it cannot decide.
bool seen(const char* what, double by, double rounding) {
  check(rounding < kLeastSeen, "visible: whether the function sees ", what, " cannot be said: rounding alone explains ",
        rounding, ", expected less than ", kLeastSeen);
  check(std::isfinite(by) && (by <= rounding || by >= kLeastSeen), "visible: whether the function sees ", what,
        " cannot be said: the deviation is ", by, ", rounding explains ", rounding, ", expected less, or ", kLeastSeen,
        " and more");
  return by > rounding;
}

}  // namespace

Visible measure_visible(const training::TrainingOptions& options, const nn::Module& initial) {
  training::TrainingOptions o = options;
  o.dtype = DType::f64;
  Generator draw{o.seed, uint64_t{1} << 50};
  training::TrainingOptions plain = o;
  plain.model.transformer().affine = false;
  Visible result{.affine = initial.parameter_count() >
                           build_model(plain, {.form = streams::Form::layer_norm})->parameter_count()};
  for (int point = 0; point < kPoints; ++point) {
    TensorMap raw;
    for (const auto& [name, initially] : initial.state_dict()) {
      const Tensor w = initially.to(DType::f64);
      raw.add(name, point == 0 ? w : w + randn(w.shape(), w.options(), draw) * kMoved);
    }
    using streams::Role, streams::Form;
    const training::Examples examples = made_examples(o, static_cast<uint64_t>(point));
    const auto at = [&](Form form, Role centred = Role::neutral, uint64_t moved = 0) {
      return logits(o, raw, examples.inputs, form, centred, moved);
    };
    const Tensor reference = at(Form::layer_norm);
    double rounding = 0;
    for (uint64_t control = 1; control <= kMovedCopies; ++control)
      rounding = larger(rounding, relative(at(Form::layer_norm, Role::neutral, control), reference));
    rounding = bound(rounding, DType::f64);
    const auto changes = [&](const char* what, const Tensor& changed) {
      return seen(what, relative(changed, reference), rounding);
    };
    result.writers_mean |= changes("the means of writers", at(Form::layer_norm, Role::writer));
    result.readers_mean |= changes("the means of readers", at(Form::layer_norm, Role::reader));
    if (!result.readers_mean)
      result.gradient_mean |= seen("the means of gradients", gradient_mean(o, raw, examples),
                                   64 * static_cast<double>(o.model.transformer().width) * epsilon(DType::f64));
    for (Form form : streams::centred_forms())
      if (changes(name_of(form), at(form))) result.another_function.insert(form);
  }
  return result;
}

}  // namespace isonorm::equivalence
