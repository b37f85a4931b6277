#include "training/steps/step.h"

#include <algorithm>
#include <numeric>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/kernels/copy.h"
#include "core/kernels/optimizer.h"
#include "core/printed.h"
#include "core/system/warning.h"
#include "core/view.h"
#include "gpu/steps/captured.h"
#include "nn/residual/gpas.h"
#include "optim/clip.h"
#include "training/steps/gradient_sum.h"
#include "training/steps/loss_checks.h"
#include "training/steps/ranks.h"

namespace isonorm::training {

namespace {

// Applies all limits except the limit on the norm.
void limit_entries(const GradientLimits& limits, const std::vector<Tensor>& parameters,
                   const std::vector<Tensor>& gates) {
  check(limits.l2 >= 0 && limits.value >= 0 && limits.gates >= 0 && limits.norm >= 0, "step: limits l2 ", limits.l2,
        ", value ", limits.value, ", gates ", limits.gates, " and norm ", limits.norm, ", expected 0 or more of each");
  if (limits.l2 > 0 || limits.value > 0)
    for (const Tensor& p : parameters) {
      const Tensor g = p.grad();
      if (g.defined()) set_grad(p, detached::clone(g));
    }
  if (limits.l2 > 0) optim::add_l2(parameters, limits.l2);
  if (limits.value > 0) optim::clip_grad_value(parameters, limits.value);
  if (limits.gates == 0 || gates.empty()) return;
  const NoGrad no_grad;
  const Tensor factor = optim::clip_numbers(gates, limits.gates).factor;
  for (const Tensor& g : gates)
    if (g.grad().defined()) set_grad(g, g.grad() * factor.to(g.dtype()));
}

}  // namespace

LimitedGradients limit_gradients(const GradientLimits& limits, const std::vector<Tensor>& parameters,
                                 const std::vector<Tensor>& gates) {
  limit_entries(limits, parameters, gates);
  if (limits.norm == 0) return {};
  const double norm = optim::grad_norm(parameters);
  return {optim::clip_factor(norm, limits.norm), norm};
}

namespace {

// Copies one-element tensors into one f64 tensor.
Tensor packed(const std::vector<Tensor>& scalars) {
  const Tensor all = empty({std::ssize(scalars)}, {DType::f64, scalars.front().device()});
  for (size_t i = 0; i < scalars.size(); ++i)
    kernels::copy(as_strided(all, scalars[i].shape(), scalars[i].strides(), static_cast<int64_t>(i)), scalars[i]);
  return all;
}

void scale_gradients(const std::vector<Tensor>& leaves, const Tensor& factor) {
  const NoGrad no_grad;
  for (const Tensor& leaf : leaves)
    if (const Tensor g = leaf.grad(); g.defined()) set_grad(leaf, g * factor.to(g.dtype()));
}

// Clears the gradients of `leaves` and adds the gradients of the batch. Returns the loss of each micro-batch, weighted
// so that their sum is the loss of the whole batch. A mean is weighted by its number of targets that count. Sums are
// divided by the total weight at the end, together with the gradients of `leaves`.
std::vector<Tensor> micro_batch_losses(nn::Module& model, const Objective& loss_of, const Examples& batch,
                                       int64_t parts, distributed::Group* group, bool rank_invariant,
                                       const parallel::Parts* own, const std::vector<Tensor>& leaves,
                                       UnownedLeaves* unowned) {
  for (const Tensor& leaf : leaves) set_grad(leaf, {});
  const bool shared = group && group->size() > 1;
  if (parts == 1 && !shared) {
    const Tensor loss = loss_of(model, batch);
    check(loss.defined(), "step: the loss is undefined: its function returns an empty Tensor");
    if (unowned) unowned->note(loss);
    backward(loss);
    return {detach(loss)};
  }
  const int64_t size = size_of_part(batch.count(), parts);
  const bool sums = loss_of.is_sum();
  const Tensor all = clamp_min(weight_of_mean(batch), 1);
  const bool whole = shared && rank_invariant;
  check(!whole || parts % group->size() == 0, "step: ", parts, " micro-batches on ", group ? group->size() : 1,
        " ranks with rank_invariant, expected the same number on each");
  const std::vector<Tensor> parameters = model.parameters();
  std::vector<std::vector<Tensor>> gradients;  // with rank_invariant: the gradients of each micro-batch
  std::optional<GradientSum> sum;
  std::vector<Tensor> summed = parameters;  // by GradientSum; gradients of parts may be summed already
  if (own && own->sums_gradients()) std::erase_if(summed, [&](const Tensor& p) { return own->is_part(p); });
  std::optional<BatchNormsOverRanks> norms;
  if (shared) {
    norms.emplace(model, *group);
    check(!whole || norms->empty(), "step: batch norm with rank_invariant, whose statistics ranks would not share");
    check((!own && norms->empty()) || size >= group->size(), "step: ", size, " rows in a part of the batch on ",
          group->size(), own ? " ranks that have parts of the model" : " ranks with batch norm",
          ", expected some on each");
  }
  if (shared) sum.emplace(*group, summed);
  const GradientListener listener{summed, [&](size_t i) { sum->complete(i); }};
  std::vector<Tensor> losses;
  Tensor weight = zeros({}, {DType::f64, batch.targets.device()});  // sum of the weights of this rank
  for (int64_t part = 0; part < parts; ++part) {
    losses.push_back(empty({}, {DType::f64, batch.targets.device()}));
    kernels::fill(losses.back(), 0);
    if (whole && part * group->size() / parts != group->rank()) continue;
    const Rows rows =
        shared && !whole ? rows_of(group->rank(), group->size(), part * size, size) : Rows{part * size, size};
    const std::optional<DrawsOfRank> draws =
        shared ? std::optional<DrawsOfRank>(std::in_place, *group, whole ? 1 : size) : std::nullopt;
    if (rows.count == 0) continue;
    const Examples some = batch.rows(rows.begin, rows.count);
    Tensor loss;
    if (sums) {
      const WeightedSum total = loss_of.sum(model, some);
      loss = total.sum, weight = weight + total.weight.to(DType::f64);
    } else {
      const Tensor mean = loss_of(model, some);
      const DType acc = acc_dtype(mean.dtype());
      loss = mean.to(acc) * (weight_of_mean(some) / all).to(acc);
    }
    if (unowned) unowned->note(loss);
    const bool sends = shared && !whole && part == parts - 1;  // gradients are complete only after the last part
    backward(loss, {}, {.listener = sends ? &listener : nullptr});
    losses.back() = detach(loss);
    if (whole) gradients.push_back(taken_gradients(parameters));
  }
  if (sums) losses.push_back(weight);
  if (shared) {
    sum->finish(std::move(gradients));
    const Tensor of_all = packed(losses);
    group->all_reduce(of_all);
    for (size_t i = 0; i < losses.size(); ++i) losses[i] = as_strided(of_all, {}, {}, static_cast<int64_t>(i));
  }
  if (!sums) return losses;
  const Tensor factor = inverse_weight(losses.back());
  losses.pop_back();
  scale_gradients(leaves, factor);
  for (Tensor& loss : losses) loss = loss.to(DType::f64) * factor;
  return losses;
}

// The values of the scalars, with a single wait for the device.
std::vector<double> to_doubles(const std::vector<Tensor>& scalars) {
  if (scalars.size() > 1 && scalars.front().device() != kCpu) return packed(scalars).to_vector<double>();
  std::vector<double> numbers;
  for (const Tensor& s : scalars) numbers.push_back(s.item());
  return numbers;
}

double sum_of(const std::vector<double>& losses, size_t parts) {
  return std::accumulate(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(parts), 0.0);
}

}  // namespace

double differentiate(nn::Module& model, const Objective& loss, const Examples& batch, int64_t parts,
                     distributed::Group* group) {
  nn::check_whole(model, "differentiate");
  if (group && group->size() > 1) check_batch(*group, model, batch, 0);
  UnownedLeaves unowned;
  const std::vector<double> losses =
      to_doubles(micro_batch_losses(model, loss, batch, parts, group, false, nullptr, model.parameters(), &unowned));
  unowned.warn_of_rest(batch);
  return sum_of(losses, losses.size());
}

Step::Step(nn::Module& model, optim::Optimizer& optimizer, Objective loss, StepOptions options)
    : model_(model), optimizer_(optimizer), loss_(std::move(loss)), options_(std::move(options)) {
  check(options_.zero == 0 || (options_.zero == 1 && !options_.apply), "step: zero ", options_.zero,
        options_.apply ? " with `apply`" : "", ", expected 0 or 1");
  check(!options_.parts || (options_.zero == 0 && !options_.apply && !options_.rank_invariant && !options_.captured),
        "step: parts of the model with `zero`, `apply`, `rank_invariant` or `captured`, expected without");
  if (!options_.parts) nn::check_whole(model, "step without StepOptions::parts");
  if (const parallel::Parts* const own = options_.parts; own && own->group().size() > 1) {
    check(own->is_loaded(), "step: parts of a model that was not loaded into them (parallel::Parts::load)");
    check(own->sums_gradients() == (&own->group() == options_.group), "step: ranks that share ",
          own->sums_gradients() ? "gradients share the rows of a batch, too: `group` is not theirs"
                                : "layers have the same rows of a batch, and `group` is theirs");
  }
  check(!options_.parts || options_.parts->group().size() == 1 || optimizer.by_entry(), "step: ", optimizer.name(),
        " needs whole tensors, but each rank has only parts");
  if (options_.apply) return;  // `apply` may update anything
  const std::vector<Tensor> updated = optimizer.parameters(), read = model.parameters();
  const bool common = std::ranges::any_of(updated, [&](const Tensor& u) {
    return std::ranges::any_of(read, [&](const Tensor& p) { return &p.impl() == &u.impl(); });
  });
  check(common, "step: none of the ", updated.size(), " parameters of ", optimizer.name(), " is one of the model's ",
        read.size());
}

// Waits only once, at the end, for all numbers: the device does not idle in between.
StepResult Step::operator()(const Examples& batch, std::optional<double> lr) {
  const bool replays = options_.captured && optimizer_.device() != kCpu;
  check(!replays || !is_shared(), "step: a step of several ranks cannot be captured");
  check_ranks(batch, lr.value_or(optimizer_.lr()));
  std::vector<double> numbers;
  if (replays) {
    check_first_steps(batch);
    numbers = replayed(batch, lr);
  } else {
    std::vector<Tensor> losses = losses_of_batch(batch);
    check_first_steps(batch);
    numbers = to_doubles(and_norm(std::move(losses), lr));
  }
  const auto parts = static_cast<size_t>(options_.accumulate);
  return {sum_of(numbers, parts), numbers.size() > parts ? std::optional(numbers.back()) : std::nullopt};
}

std::vector<Tensor> Step::and_norm(std::vector<Tensor> losses, std::optional<double> lr) {
  if (const Tensor norm = take_update(lr); norm.defined()) losses.push_back(norm);
  return losses;
}

struct Step::Replay {
  // Everything that is fixed in the graph, as an address or a size.
  struct Subject {
    std::vector<std::shared_ptr<Storage>> parameters;
    std::vector<int64_t> wants;  // requires_grad of each parameter, training() of each module
    std::vector<std::pair<Dims, DType>> batch;
    int loads;
    bool operator==(const Subject&) const = default;
  } subject;
  Examples batch;  // the graph reads the batch from here
  Tensor seen;     // the packed result of and_norm()
  std::unique_ptr<gpu::Captured> run;
};

Step::~Step() = default;

std::vector<double> Step::replayed(const Examples& batch, std::optional<double> lr) {
  check(optimizer_.replays() && !options_.apply, "step: steps of ", optimizer_.name(),
        options_.apply ? " by a function" : "", " cannot be captured");
  Replay::Subject subject{.parameters = {}, .wants = {}, .batch = {}, .loads = optimizer_.loads()};
  for (const Tensor& x : batch.tensors()) subject.batch.emplace_back(x.shape(), x.dtype());
  const std::vector<Tensor> updated = optimizer_.parameters();
  for (const std::vector<Tensor>& read : {updated, model_.parameters()})
    for (const Tensor& p : read) {
      subject.parameters.push_back(p.impl().storage);
      subject.wants.push_back(requires_grad(p));
    }
  modes_of(model_, subject.wants);
  if (!replay_ || !(replay_->subject == subject)) {
    const Device device = optimizer_.device();
    const auto room = [&](const Tensor& x) { return empty(x.shape(), {x.dtype(), device}); };
    replay_ = nullptr;  // frees its memory first
    replay_ = std::make_unique<Replay>(Replay{subject, batch.each(room), {}, {}});
    Replay* r = replay_.get();
    r->run = std::make_unique<gpu::Captured>(
        device,
        [this, r] {
          r->seen = {};  // releases its block for the new tensor
          r->seen = packed(and_norm(losses_of_batch(r->batch), {}));
        },
        [this] {
          std::vector<kernels::Update> updates = optimizer_.advance();
          if (options_.limits.l2 > 0)  // the updates of add_l2() come first, one for each gradient
            updates.insert(updates.begin(), updates.size(),
                           {.gradient = {}, .parameter = {}, .state = {}, .rule = rules::Sgd{-options_.limits.l2}});
          return updates;
        });
  }
  Replay& r = *replay_;
  const std::vector<Tensor> read = r.batch.tensors(), given = batch.tensors();
  for (size_t i = 0; i < read.size(); ++i) copy_into(read[i], given[i]);
  if (lr) optimizer_.set_lr(*lr);
  (*r.run)();
  for (const Tensor& p : updated) p.impl().storage->bump_version();  // a replay writes to them unseen
  return r.seen.to_vector<double>();
}

double Step::differentiate(const Examples& batch) {
  check_ranks(batch, optimizer_.lr());
  const std::vector<double> losses = to_doubles(losses_of_batch(batch));
  check_first_steps(batch);
  return sum_of(losses, losses.size());
}

void Step::check_ranks(const Examples& batch, double lr) {
  for (distributed::Group* const ranks : groups())
    check_step(*ranks, taken_, {model_, optimizer_, loss_, options_}, batch, lr);
}

void Step::check_first_steps(const Examples& batch) {
  if (taken_ == 0 && !model_.training())
    warn(
        "step: the model is in evaluation mode: no dropout acts and running statistics stay; call model.train() first");
  if (taken_++ <= 1) check_shares({model_, optimizer_, loss_, options_}, batch);
}

std::vector<distributed::Group*> Step::groups() const {
  std::vector<distributed::Group*> all;
  if (is_shared()) all.push_back(options_.group);
  if (options_.parts && &options_.parts->group() != options_.group && options_.parts->group().size() > 1)
    all.push_back(&options_.parts->group());
  return all;
}

std::optional<double> Step::update(std::optional<double> lr) {
  for (distributed::Group* const ranks : groups()) {
    ranks->check_same(shortest(lr.value_or(optimizer_.lr())), "rate");
  }
  const Tensor norm = take_update(lr);
  return norm.defined() ? std::optional(norm.item()) : std::nullopt;
}

std::vector<Tensor> Step::losses_of_batch(const Examples& batch) {
  std::optional<SaveActivations> kept_as;
  if (options_.activations) kept_as.emplace(*options_.activations);
  const RoundedMasters rounded(masters_);
  std::vector<Tensor> leaves = model_.parameters();  // and parameters of the optimizer that the model does not own
  for (const Tensor& p : optimizer_.parameters())
    if (std::ranges::none_of(leaves, [&](const Tensor& leaf) { return &leaf.impl() == &p.impl(); }))
      leaves.push_back(p);
  UnownedLeaves unowned;
  std::vector<Tensor> losses =
      micro_batch_losses(model_, loss_, batch, options_.accumulate, options_.group, options_.rank_invariant,
                         options_.parts, leaves, taken_ == 0 ? &unowned : nullptr);
  unowned.warn_of_rest(batch);
  if (options_.parts) options_.parts->check_gradients();
  return losses;
}

Tensor Step::take_update(std::optional<double> lr) {
  if (lr) optimizer_.set_lr(*lr);
  const std::vector<Tensor> parameters = optimizer_.parameters();
  check(options_.apply || std::ranges::any_of(parameters, [](const Tensor& p) { return p.grad().defined(); }),
        "step: none of the ", parameters.size(), " parameters of ", optimizer_.name(),
        " has a gradient; the loss depends on none of them");
  limit_entries(options_.limits, parameters, options_.limits.gates > 0 ? nn::gates(model_) : std::vector<Tensor>());
  optim::ClipNumbers clip;
  if (options_.limits.norm > 0)
    clip = options_.parts ? options_.parts->clip_numbers(parameters, options_.limits.norm)
                          : optim::clip_numbers(parameters, options_.limits.norm);
  const bool shared = options_.zero > 0 && is_shared();
  if (shared) keep_own_gradients(*options_.group, parameters);
  if (options_.apply)
    options_.apply(clip.factor.defined() ? clip.factor.item() : 1);
  else if (clip.factor.defined())
    optimizer_.step_scaled(clip.factor);
  else
    optimizer_.step();
  if (shared) share_weights(*options_.group, parameters);
  return clip.norm;
}

}  // namespace isonorm::training
