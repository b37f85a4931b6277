#include "training/run/trainer.h"

#include <cmath>

#include "core/error.h"
#include "core/printed.h"
#include "core/random.h"
#include "core/system/failures.h"
#include "streams/stream.h"
#include "training/model_file.h"
#include "training/records/held_out.h"
#include "training/records/training_text.h"
#include "training/run/content.h"
#include "training/run/identity.h"
#include "training/steps/loop.h"
#include "training/steps/ranks.h"

namespace isonorm::training {
namespace {

// The random numbers of a step (dropout) follow from its number, so that a training that was interrupted draws the same
// ones.
void seed_step(uint64_t seed, int64_t step) { default_generator() = {seed, static_cast<uint64_t>(step + 1) << 40}; }

}  // namespace

StepOptions Trainer::step_options() {
  const TrainingOptions& t = options_.training;
  return {.limits = t.limits(),
          .accumulate = t.accumulate,
          .activations = options_.activations == nn::Precision::full ? t.dtype : DType::bf16,
          .captured = options_.captured,
          .group = &ranks_,
          .rank_invariant = t.rank_invariant,
          .zero = shares_state() ? 1 : 0,
          .parts = shards_.get()};
}

// Each step: batch, forward, loss, backward, limits, update (training/steps/step.h), average, record. Then, if due: the
// progress line, a test pass, the checkpoint, and the question whether to stop.
bool Trainer::train(std::function<bool()> stop) {
  asked_to_stop_ = std::move(stop), stop_ = false;
  Step step(*model_, *optimizer_, smoothed_cross_entropy(options_.training.label_smoothing), step_options());
  const auto batch = [&](int64_t t) {
    seed_step(options_.training.seed, t);
    return source_.batch(t);
  };
  // The learning rate of a step depends on its number and the options, not on the rates of earlier steps.
  Loop loop(step, batch, options_.training.rates(), {.stop_at_nan = false});  // record() throws
  loop.every(1, [&](TrainingStep s) {
    if (average_) average_->update();
    s.seconds = watch_.seconds();
    return record(s), true;
  });
  Progress progress(status_, steps(), step_);
  loop.every(1, std::ref(progress));
  bool waited = best_.over();  // the patience for a better test loss is over
  loop.every(options_.evaluate_every, [&](const TrainingStep& s) {
    const bool whole = s.step == steps() || test();
    waited = s.step < steps() && best_.over();
    return whole && !waited;
  });
  loop.every(options_.save_every, [&](const TrainingStep&) { return save(), true; });
  loop.every(1, [&](const TrainingStep&) { return !stopped(); });

  announce();
  if (ranks_.any(lacks_test())) test(), waited = best_.over();
  const bool all = !stopped() && (waited || loop.run(steps(), step_) || (waited && !stop_));
  if (!result_.steps.empty()) progress.end(result_.steps.back());
  save();
  if (all) save_average();
  const auto& passes = result_.evaluations;
  const bool whole = all && ((!passes.empty() && passes.back().step == step_) || test());
  if (waited) result_.patience = best_.since();
  result_.seconds = watch_.seconds();
  if (whole) write_logs([&](RunLog& log) { log.end(result_); });
  if (log_failure_) std::rethrow_exception(log_failure_);
  return whole;
}

bool Trainer::lacks_test() const {
  const int every = options_.evaluate_every;
  if (step_ == 0 || step_ >= steps() || every == 0 || step_ % every != 0) return false;
  const auto& tested = result_.earlier.evaluations;
  const bool logged = options_.log.empty() || (!tested.empty() && tested.back().step == step_);
  return !logged || (keeps_best() && best_.last_step() < step_);
}

bool Trainer::stopped() { return stop_ = stop_ || ranks_.any(asked_to_stop_() || log_failure_); }

template <class Write> void Trainer::write_logs(const Write& write) try {
  if (!log_failure_)
    for (const auto& log : logs_) write(*log);
} catch (const Error&) {
  log_failure_ = std::current_exception();
}

void Trainer::record(const TrainingStep& s) {
  step_ = s.step;
  if (!std::isfinite(s.loss))
    throw Diverged(text("the loss of step ", step_, " is not a finite number; the learning rate is ", s.lr));
  result_.steps.push_back(s);
  write_logs([&](RunLog& log) { log.step(s); });
}

// Tests the model, with the averaged weights if there are some. Returns false, without an evaluation, if it was to
// stop.
bool Trainer::test() {
  nn::Module* models[] = {model_.get()};
  if (average_) average_->apply();
  const auto go_on = [&](int, int) { return !asked_to_stop_() && !log_failure_; };
  if (shards_) shards_->gather();  // each rank computes whole batches
  const std::optional<TestPass> pass = test_pass(source_, models, go_on, &ranks_);
  if (shards_) shards_->release();
  if (average_) average_->restore();
  if (!pass) return false;
  if (pass->predictions == 0) return true;
  if (!std::isfinite(pass->scores[0].loss))
    throw Diverged(text("the held-out loss after step ", step_, " is not a finite number"));
  record(Evaluation{step_, pass->scores[0].loss, pass->scores[0].right, pass->predictions});
  return true;
}

void Trainer::record(const Evaluation& e) {
  result_.evaluations.push_back(e);
  write_logs([&](RunLog& log) { log.evaluation(e); });
  const Input input = options_.training.model.row().input;
  if (step_ < steps()) say(text("step ", step_, "/", steps(), "  ", evaluation_text(e, input)));
  if (!keeps_best() || step_ <= best_.last_step()) return;  // it was tested before the training was killed
  if (best_.take(step_, e.loss) && !options_.best.empty()) {
    const Checkpoint c = checkpoint();
    ranks_.on_first([&] { save_checkpoint(options_.best, c); });
  }
  result_.best = {.step = best_.step(), .loss = best_.loss()};
}

void Trainer::save() {
  check_finite("");
  if (options_.checkpoint.empty() || saved_step_ == step_) return;
  const Checkpoint c = checkpoint();
  ranks_.on_first([&] { saved_.save(c); });
  saved_step_ = step_;
}

DataSpec Trainer::spec() const {
  DataSpec spec = source_.options().spec;
  spec.train_on(identity_.at(kTrainingData), source_.options().test_share);
  spec.row_length = source_.options().row_length;
  return spec;
}

Checkpoint Trainer::checkpoint() {
  const TensorMap weights = shards_ ? shards_->whole() : model_->state_dict();
  const TensorMap state = shards_          ? shards_->whole_state(*optimizer_)
                          : shares_state() ? state_of_ranks(ranks_, optimizer_->live_state())
                                           : optimizer_->live_state();
  ranks_.check_same(weights, "weight");
  ranks_.check_same(by_path(*model_, *optimizer_, state), "state of the optimizer");
  Checkpoint c{{}, {}, identity_};
  c.values.emplace("step", text(step_));
  add_content(c, kModel, {kModel, {weights}});
  add_content(c, kOptimizer, {optimizer_->name(), {state}});
  c.values.merge(kept(options_));
  c.values.merge(spec().entries());
  if (best_.step() > 0) add_content(c, kBest, {kBest, {{}, best_.written()}});
  if (average_) add_content(c, kAverage, {kAverage, {average_->live_state()}});
  return c;
}

void Trainer::save_average() {
  if (options_.average.empty()) return;
  ranks_.on_first([&] {
    average_->apply();
    save_model(options_.average, *model_, kModels, spec());
    average_->restore();
  });
}

}  // namespace isonorm::training
