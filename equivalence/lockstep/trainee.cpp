#include "equivalence/lockstep/trainee.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/coordinates/parametrisation.h"
#include "streams/parametrize.h"
#include "training/optimizers.h"

namespace isonorm::equivalence {

Trainee::Trainee(const training::TrainingOptions& o, const Variant& variant)
    : options_(o), variant_(variant), generator_{o.seed, uint64_t{1} << 62} {
  check(o.accumulate >= 1 && o.batch % o.accumulate == 0, "accumulate: ", o.batch, " examples in ", o.accumulate,
        " parts of equal size");
  check(o.zero <= 1, "zero: a proof compares whole gradients, and each rank holds a part in stage ", o.zero,
        "; expected 0 or 1");
  if (o.ranks > 1) {
    ranks_ = std::make_unique<distributed::Ranks>(o.ranks);
    group_ = &ranks_->group(0);
    for (int rank = 1; rank < o.ranks; ++rank) others_.emplace_back(new Trainee(o, variant, ranks_->group(rank)));
  }
  make();
}

Trainee::Trainee(const training::TrainingOptions& o, const Variant& variant, distributed::Group& group)
    : options_(o), variant_(variant), group_(&group), generator_{o.seed, uint64_t{1} << 62} {
  make();
}

Trainee::~Trainee() = default;

void Trainee::falsify(NegativeControl mistake) {
  mistake_ = mistake;
  for (const auto& other : others_) other->falsify(mistake);
  if (mistake == NegativeControl::added_twice)
    on_grad(model_->parameters().back(), [](const Tensor& g) { return g * 2; });
}

// The loss of this rank's rows of a micro-batch. A mistake of ranks changes the gradients but not the loss.
Tensor Trainee::loss_of(const training::Examples& batch) {
  if (mistake_ == NegativeControl::same_draws) default_generator().share = 0;
  const Tensor loss =
      cross_entropy(forward(batch.inputs), batch.targets, {.label_smoothing = options_.label_smoothing});
  const double rows = static_cast<double>(options_.batch) / static_cast<double>(options_.accumulate),
               ranks = options_.ranks;
  double factor = 1;
  if (mistake_ == NegativeControl::summed) factor = ranks;
  if (mistake_ == NegativeControl::left_out) factor = group_->rank() != 1;
  if (mistake_ == NegativeControl::unweighted) factor = rows / ranks / static_cast<double>(batch.targets.size(0));
  return factor == 1 ? loss : loss + (loss - detach(loss)) * (factor - 1);
}

template <class F> void Trainee::on_ranks(const F& f) {
  if (!ranks_) return f(*this);
  ranks_->run([&](distributed::Group& g) { f(g.rank() == 0 ? *this : *others_[static_cast<size_t>(g.rank()) - 1]); });
}

void Trainee::make() {
  model_ = build_model(options_, {.form = variant_.form, .storage = variant_.storage});
  stream_ = streams::stream_of(*model_);
  parameters_ = streams::named_parameters(*model_);
  const auto make = [&](const std::vector<Tensor>& tensors) {
    std::vector<nn::NamedParameter> parameters(parameters_.begin(), parameters_.end());
    for (size_t i = 0; i < tensors.size(); ++i) parameters[i].tensor = tensors[i];
    return build_optimizer(options_, parameters);
  };
  if (variant_.gradients == GradientRule::lifted)
    lifted_ = std::make_unique<Lifted>(parameters_, stream(), make);
  else
    own_ = make(model_->parameters());
  training::StepOptions step{.limits = options_.limits(),
                             .accumulate = options_.accumulate,
                             .group = group_,
                             .rank_invariant = options_.rank_invariant,
                             .zero = options_.zero};
  if (lifted_) step.apply = [this](double scale) { lifted_->step(scale); };
  const auto loss = [this](nn::Module&, const training::Examples& b) { return loss_of(b); };
  step_.emplace(*model_, optimizer(), loss, step);
}

void Trainee::start_from(const nn::Module& raw) {
  model_->load_state_dict(mapped_state(raw, stream()));
  project(parameters_, variant_.start);
  for (const auto& other : others_) other->start_from(raw);
}

void Trainee::resume() {
  const TensorMap weights = model_->state_dict(), state = optimizer().state_dict();
  const std::unique_ptr<optim::Ema> average = std::move(average_);
  make();
  model_->load_state_dict(weights);
  optimizer().load_state_dict(state);
  if (!average) return;
  average_ = std::make_unique<optim::Ema>(model_->parameters(), optim::EmaOptions{.decay = options_.ema});
  average_->load_state_dict(average->state_dict());
}

Tensor Trainee::compared_gradient(const streams::NamedParameter& p) const {
  const Tensor own = p.tensor.grad();  // undefined if the loss does not depend on the parameter
  const Tensor g = raw_gradient(own.defined() ? own : zeros_like(p.tensor), p, stream());
  const bool recentred = stream().parameter_width() == stream().width() && p.role == streams::Role::writer &&
                         (variant_.gradients != GradientRule::as_is || variant_.after_step != Projection::none);
  return recentred ? streams::recentre(g, p.stream_dim) : g;
}

void Trainee::differentiate(const training::Examples& batch) {
  on_ranks([&](Trainee& t) { t.differentiate_here(batch); });
}

void Trainee::update(double lr) {
  on_ranks([&](Trainee& t) {
    t.update_here(lr);
    if (t.group_) t.group_->check_same(t.model_->state_dict(), "weight after an update");
  });
}

void Trainee::differentiate_here(const training::Examples& batch) {
  if (options_.resume_at > 0 && taken_ == options_.resume_at) resume();
  ++taken_;
  {
    const SameDraws draws(generator_);
    loss_ = step_->differentiate(batch.on(options_.device));
  }
  NoGrad no_grad;
  begin_step();
  for (const streams::NamedParameter& p : parameters_) gradients_.push_back(compared_gradient(p));
}

// After a learned gain, a tied head sees the means of the table's rows.
Tensor Trainee::compared_weight(const streams::NamedParameter& p) const {
  const bool affine = options_.model.transformer().affine;
  if (affine && p.name == options_.model.row().tied_table && options_.model.flag("tied")) return detach(p.tensor);
  return visible_weight(p, stream(), !affine);
}

void Trainee::update_here(double lr) {
  if (variant_.gradients == GradientRule::metric) correct_gradients(parameters_, stream());
  if (lifted_) lifted_->lift();
  if (options_.ema > 0 && !average_)
    average_ = std::make_unique<optim::Ema>(model_->parameters(), optim::EmaOptions{.decay = options_.ema});
  step_->update(lr);
  project(parameters_, variant_.after_step);
  weights_.clear();
  for (const streams::NamedParameter& p : parameters_) weights_.push_back(compared_weight(p));
  if (!average_) return;
  average_->update();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    streams::NamedParameter p = parameters_[i];
    p.tensor = average_->averages()[i];
    weights_.push_back(compared_weight(p));
  }
}

}  // namespace isonorm::equivalence
