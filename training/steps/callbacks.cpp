#include "training/steps/callbacks.h"

#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/printed.h"

namespace isonorm::training {

bool Progress::operator()(const TrainingStep& s) {
  if (!line_.due(s.step, steps_)) return true;
  const double rate = (s.step - done_) / watch_.seconds();
  line_.update(text("step ", s.step, "/", steps_, printed("  loss %.4f  lr %.2e  ", s.loss, s.lr),
                    duration_text((steps_ - s.step) / rate), " left", printed("  %.1f steps/s", rate)));
  return true;
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
  std::istringstream in(words);
  BestLoss b(patience_);
  const bool whole = in >> b.loss_ >> b.step_ >> b.since_ >> b.last_ && in.peek() == EOF;
  if (!whole || !std::isfinite(b.loss_) || b.step_ < 1 || b.since_ < 0 || b.last_ < b.step_) return false;
  *this = b;
  return true;
}

}  // namespace isonorm::training
