#include "training/steps/callbacks.h"

#include <cmath>

#include "core/error.h"
#include "core/printed.h"

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
  if (!whole || b.step_ < 0 || b.since_ < 0 || b.last_ < b.step_) return false;
  if (b.step_ > 0 ? !std::isfinite(b.loss_) : b.loss_ != BestLoss().loss_) return false;  // step 0: no finite loss yet
  *this = b;
  return true;
}

}  // namespace isonorm::training
