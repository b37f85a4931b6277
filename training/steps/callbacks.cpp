#include "training/steps/callbacks.h"

#include <climits>
#include <cmath>

#include "core/error.h"
#include "core/printed.h"
#include "core/random.h"
#include "core/system/foreign_text.h"
#include "io/checkpoint.h"

namespace isonorm::training {

bool Progress::operator()(const TrainingStep& s) {
  rate_.add(watch_.seconds(), s.step);
  if (line_.due(s.step, steps_)) show(s);
  return true;
}

void Progress::end(const TrainingStep& last) {
  if (shown_ != last.step) show(last);
  line_.keep();
}

void Progress::show(const TrainingStep& s) {
  shown_ = s.step;
  line_.update(text("step ", s.step, "/", steps_, printed("  loss %.4f  lr %.2e  ", s.loss, s.lr),
                    duration_text(rate_.seconds_left(steps_)), " left", printed("  %.1f steps/s", rate_.per_second())));
}

bool BestLoss::take(int step, double loss) {
  last_ = step;
  ++since_;
  if (!(loss < loss_)) return false;
  loss_ = loss, step_ = step, since_ = 0;
  return true;
}

std::string BestLoss::written() const { return text(shortest(loss_), ' ', step_, ' ', since_, ' ', last_); }

bool BestLoss::read(const std::string& words) {
  BestLoss b(patience_);
  const bool whole = read_numbers(words, b.loss_, b.step_, b.since_, b.last_);
  if (!whole || !std::isfinite(b.loss_) || b.step_ < 1 || b.since_ < 0 || b.last_ < b.step_) return false;
  *this = b;
  return true;
}

SavedTraining::SavedTraining(std::string path, nn::Module& model, optim::Optimizer& optimizer, BestLoss& best)
    : path_(std::move(path)), model_(model), optimizer_(optimizer), best_(best) {
  const std::optional<NewestCheckpoint> newest = checkpoint_to_go_on_from(path_);
  if (!newest) return;
  const auto& [checkpoint, from] = *newest;
  const Scope scope(from);
  const std::string& name = text_at(checkpoint.values, "optimizer");
  check(name == optimizer_.name(), "its optimizer is ", Shown{name}, ", expected ", optimizer_.name());
  const int64_t step = integer_at(checkpoint.values, "step");
  check(step >= 0 && step <= INT_MAX, "it is after step ", step);
  const auto tests = checkpoint.values.find("tests");
  check(tests == checkpoint.values.end() || best_.read(tests->second), "its test passes are damaged");
  model_.load_state_dict(checkpoint.weights);
  optimizer_.load_state_dict(checkpoint.optimizer);
  default_generator() = {static_cast<uint64_t>(integer_at(checkpoint.values, "random seed")),
                         static_cast<uint64_t>(integer_at(checkpoint.values, "random offset"))};
  done_ = static_cast<int>(step);
  is_whole_ = from == path_;
}

void SavedTraining::save(int step) {
  const Generator& random = default_generator();
  Checkpoint c{model_.state_dict(), optimizer_.live_state(), {}};
  c.values = {{"step", text(step)},
              {"optimizer", optimizer_.name()},
              {"random seed", text(static_cast<int64_t>(random.seed))},
              {"random offset", text(static_cast<int64_t>(random.offset))}};
  if (best_.step() > 0) c.values.emplace("tests", best_.written());
  if (is_whole_) keep_previous_checkpoint(path_);
  save_checkpoint(path_, c);
  is_whole_ = true;
}

}  // namespace isonorm::training
