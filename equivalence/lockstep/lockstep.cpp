#include "equivalence/lockstep/lockstep.h"

#include <cmath>

#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/made_examples.h"
#include "equivalence/lockstep/trainee.h"
#include "streams/stream.h"
#include "training/from_outside.h"

namespace isonorm::equivalence {

namespace {

// Throws if the model does not repeat itself. Its own noise would count as rounding: the controls would have it, and
// every bound would be wide enough to hide a fault.
void check_repeats(const training::TrainingOptions& o, const nn::Module& initial) {
  const training::Examples batch = made_examples(o);
  Trainee once(o, raw_variant(streams::Form::layer_norm)), again(o, raw_variant(streams::Form::layer_norm));
  for (Trainee* trainee : {&once, &again}) trainee->start_from(initial), trainee->differentiate(batch);
  const double gradient = again.gradient_deviation(once);
  check(once.loss() == again.loss() || std::isnan(once.loss()),
        "lockstep: the model does not repeat itself: from the same weights, on the same examples, its loss is ",
        once.loss(), " and then ", again.loss());
  check(!(gradient > 0),
        "lockstep: the model does not repeat itself: from the same weights, on the same examples, its gradients differ "
        "by ",
        gradient, " of their largest entry");
}

}  // namespace

Lockstep::Lockstep(const training::TrainingOptions& options, const nn::Module& initial, RunResult& reference,
                   std::span<RunResult> controls, std::span<RunResult> runs) {
  training::TrainingOptions uninterrupted = options;
  uninterrupted.resume_at = 0, uninterrupted.ranks = 1, uninterrupted.zero = 0;
  const auto make = [&](RunResult& r, const training::TrainingOptions& o, bool control) {
    auto trainee = std::make_unique<Trainee>(o, *r.variant);
    trainee->start_from(initial);
    if (r.seed != 0) move_by_one_ulp(trainee->model(), r.seed);
    add(std::move(trainee), r, control);
  };
  if (training::from_outside(options)) check_repeats(uninterrupted, initial);
  make(reference, uninterrupted, false);
  for (RunResult& r : controls) make(r, uninterrupted, true);
  for (RunResult& r : runs) {
    training::TrainingOptions o = options;
    if (r.device) o.device = *r.device;
    make(r, o, false);
  }
}

void Lockstep::add(std::unique_ptr<Training> training, RunResult& record, bool control) {
  record.parameters = training->model().parameter_count();
  if (members_.empty() && record.parameters > 0) reference_dtype_ = training->model().parameters()[0].dtype();
  members_.push_back({std::move(training), &record, control});
}

bool Lockstep::train_on_made(const training::TrainingOptions& o, int steps, const Continue& go_on) {
  for (int t = 0; t < steps; ++t) {
    step(made_examples(o, static_cast<uint64_t>(t)), o.lr);
    if (go_on && !go_on()) return false;
  }
  return true;
}

void Lockstep::step(const training::Examples& batch, double lr) {
  Training& reference = *members_.front().training;
  for (Member& m : members_) {
    m.training->differentiate(batch);
    m.training->update(lr);
  }
  for (Member& m : members_)
    if (m.control) reference.note_control(*m.training);
  furthest_.push_back(furthest_.empty() ? Names() : furthest_.back());
  for (Member& m : members_) {
    const Training& training = *m.training;
    RunResult& r = *m.record;
    r.losses.push_back(training.loss());
    if (&training == &reference) continue;
    const std::vector<Pair> loss = {training.loss_pair(reference)};
    const std::vector<Pair> gradients = training.gradient_pairs(reference), weights = training.weight_pairs(reference);
    const std::vector<Pair>* compared[] = {&loss, &gradients, &weights};
    const bool agreed = !r.first_difference;
    for (size_t q = 0; q < std::size(kQuantities); ++q) {
      const std::vector<Pair>& pairs = *compared[q];
      std::vector<double>& out = r.deviations.*kQuantities[q].path;
      const auto [furthest, deviation] = furthest_pair(pairs);
      out.push_back(deviation);
      if (m.control && furthest && !(out.back() <= control_[q])) furthest_.back()[q] = furthest->name;
      double& most = m.control ? control_[q] : worst_;
      most = larger(most, out.back());
      if (m.control || r.first_difference) continue;
      const double limit = bound(control_[q], reference_dtype_);
      if (!(out.back() <= limit))
        if (const auto place = furthest_off(pairs))
          r.first_difference = {static_cast<int>(out.size()), kQuantities[q].name, *place};
    }
    if (!agreed || !r.first_difference) continue;
    constexpr const char* kTensorOf[] = {"loss", "gradient", "weight"};  // of kQuantities
    for (size_t q = 0; q < std::size(kQuantities); ++q) {
      const double limit = bound(control_[q], reference_dtype_);
      CompareCount count{kTensorOf[q], compared[q]->size()};
      for (const Pair& p : *compared[q]) {
        const double d = equivalence::deviation({p});
        if (d <= limit) continue;
        ++count.differing;
        r.first_difference->deviations.push_back({kTensorOf[q], *furthest_off({p}), d, limit});
      }
      r.first_difference->counts.push_back(count);
    }
  }
}

}  // namespace isonorm::equivalence
