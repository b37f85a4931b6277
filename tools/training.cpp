#include "tools/training.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "core/random.h"
#include "equivalence/json.h"
#include "equivalence/model_file.h"
#include "equivalence/optimizers.h"
#include "equivalence/printed.h"
#include "equivalence/test_pass.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "tools/ending.h"
#include "tools/interrupt.h"
#include "tools/proof_text.h"

namespace isonorm::tools {

using namespace equivalence;

namespace {

// What a checkpoint must have been trained with to be gone on with.
Metadata identity(const Manifest& manifest) {
  Metadata m;
  for (const auto& [name, value] : manifest.options)
    if (name != "data" && name != "threads") m.emplace(name, value);
  m.emplace("data", "sha256:" + manifest.data_sha256);  // wherever it lies
  return m;
}

// Bytes of a log up to the first line that speaks of a later step than `step`, or is half a line: what a killed
// training logged after its checkpoint comes once more.
int64_t logged_up_to(const std::string& path, int step) {
  std::ifstream log(path, std::ios::binary);
  int64_t bytes = 0;
  for (std::string line; std::getline(log, line) && !log.eof() && logged_step(line) <= step;)
    bytes += static_cast<int64_t>(line.size()) + 1;
  return bytes;
}

}  // namespace

Training::Training(const TrainOptions& o) : o_(o), source_(o.training), status_(stderr, o.output.quiet) {
  result_.form = o.form;
  result_.options = o.training;
  result_.manifest = manifest_of(o.training, o.form, o.activations);
  result_.manifest.data_sha256 = sha256_of_files(source_.files());
  manual_seed(o.training.seed);
  model_ = build_model(o.training, source_.shape(), nn::Stream(nn::stream_form(o.form), o.training.width));
  optimizer_ = build_optimizer(o.training, model_->named_parameters());
  result_.parameters = model_->parameter_count();
  if (!o.checkpoint.empty() && std::filesystem::exists(o.checkpoint)) resume();
  result_.first_step = step_ + 1;
  const bool added_to = step_ > 0 && std::filesystem::is_regular_file(o.output.log);
  log_ = std::make_unique<LineLog>(o.output.log, added_to ? logged_up_to(o.output.log, step_) : 0);
  if (log_->open()) log_->write(log_manifest(result_.manifest));
}

void Training::resume() {
  const auto [checkpoint, from] = load_newest_checkpoint(o_.checkpoint);
  checkpoint_is_good_ = from == o_.checkpoint;
  for (const auto& [name, value] : identity(result_.manifest)) {
    // One from before there was a choice kept its activations as they were.
    const bool unsaid = name == "activations" && !checkpoint.values.contains(name);
    const std::string before = unsaid ? name_of(o_.training.dtype) : text_at(checkpoint.values, name);
    check(before == value, from, ": was trained with --", name, " ", before, ", asked for is ", value);
  }
  const Scope scope(from);
  model_->load_state_dict(checkpoint.weights);
  optimizer_->load_state_dict(checkpoint.optimizer);
  const int64_t step = integer_at(checkpoint.values, "step");
  check(step >= 0 && step <= steps(), "its step ", step, " is not in [0, ", steps(), "]");
  step_ = static_cast<int>(step);
  check_weights(text(from, ": "));
  if (checkpoint_is_good_) saved_step_ = step_;
  if (!checkpoint_is_good_) std::fprintf(stderr, "%s is damaged: taking the one before it\n", o_.checkpoint.c_str());
  if (!o_.output.quiet) std::fprintf(stderr, "%s: going on after step %d\n", from.c_str(), step_);
}

bool Training::run() {
  const ProofOptions& t = o_.training;
  const optim::Schedule schedule{.peak = t.lr, .warmup = std::min(t.warmup, steps()), .steps = steps()};
  first_step_begin_ = std::chrono::steady_clock::now();
  while (step_ < steps()) {
    if (interrupted()) {
      status_.clear();
      save();
      return false;
    }
    const TrainingStep s = step(schedule.lr(step_));
    if (!std::isfinite(s.loss))
      throw Diverged(text("the loss of step ", step_, " is not a finite number; the learning rate is ", s.lr));
    result_.losses.push_back(s.loss);
    if (log_->open()) log_->write(log_step(s));
    show(s);
    if (step_ == steps() || (o_.save_every > 0 && step_ % o_.save_every == 0)) save();
    if (step_ < steps() && o_.evaluate_every > 0 && step_ % o_.evaluate_every == 0) evaluate();
  }
  const bool whole = evaluate();
  status_.clear();
  result_.seconds = seconds();
  if (whole && log_->open()) log_->write(log_end(result_));
  return whole;
}

TrainingStep Training::step(double lr) {
  const SaveActivations kept_as(o_.activations);
  const Examples batch = source_.batch(step_);
  const Tensor loss = cross_entropy((*model_)(batch.inputs), batch.targets);
  optimizer_->zero_grad();
  backward(loss);
  optimizer_->set_lr(lr);
  TrainingStep s{.step = step_ + 1, .lr = lr};
  const double clip = o_.training.clip;
  if (clip > 0) s.gradient_norm = optim::gradient_norm(model_->parameters());
  optimizer_->step(s.gradient_norm ? optim::clip_factor(*s.gradient_norm, clip) : 1);
  s.loss = loss.item();
  s.seconds = seconds();
  ++step_;
  return s;
}

void Training::show(const TrainingStep& s) {
  if (!status_.due(s.step, steps())) return;
  const double span = std::chrono::duration<double>(std::chrono::steady_clock::now() - first_step_begin_).count();
  const double rate = (s.step - result_.first_step + 1) / span;
  status_.update(text("step ", s.step, "/", steps(), printed("  loss %.4f  lr %.2e  ", s.loss, s.lr),
                      duration_text((steps() - s.step) / rate), " left", printed("  %.1f steps/s", rate)));
}

// Tests the model as it is. Returns false where Ctrl-C came: then there is no evaluation.
bool Training::evaluate() {
  nn::Module* models[] = {model_.get()};
  const std::optional<TestPass> pass = test_pass(source_, models, [](int, int) { return !interrupted(); });
  if (!pass) return false;
  if (pass->predictions == 0) return true;
  if (!std::isfinite(pass->scores[0].loss))
    throw Diverged(text("the held-out loss after step ", step_, " is not a finite number"));
  const Evaluation e{step_, pass->scores[0].loss, pass->scores[0].right, pass->predictions};
  result_.evaluations.push_back(e);
  if (log_->open()) log_->write(log_evaluation(e));
  return true;
}

void Training::check_weights(const std::string& where) const {
  for (const TensorMap& map : {model_->state_dict(), optimizer_->state_dict()})
    for (const auto& [name, t] : map) {
      if (!is_floating(t.dtype())) continue;
      for (const double x : t.to_vector<double>())
        if (!std::isfinite(x)) throw Diverged(text(where, "after step ", step_, " ", name, " has an entry ", x));
    }
}

void Training::save() {
  check_weights("");
  if (o_.checkpoint.empty() || saved_step_ == step_) return;
  Checkpoint c{model_->state_dict(), optimizer_->state_dict(), identity(result_.manifest)};
  c.values.merge(describe(*model_));  // so that other verbs know what model it is
  c.values.emplace("step", text(step_));
  if (checkpoint_is_good_) keep_previous_checkpoint(o_.checkpoint);
  save_checkpoint(o_.checkpoint, c);
  checkpoint_is_good_ = true;
  saved_step_ = step_;
}

}  // namespace isonorm::tools
