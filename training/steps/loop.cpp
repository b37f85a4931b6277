#include "training/steps/loop.h"

#include <climits>
#include <cmath>

#include "core/tensor.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"

namespace isonorm::training {

std::optional<Interval> Interval::read(const std::string& word) {
  constexpr std::pair<char, double> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
  if (int steps = 0; read_number(word, steps) && steps >= 0) return Interval(steps);
  for (const auto& [unit, seconds] : kUnits)
    if (double n = 0; word.ends_with(unit) &&
                      read_number(word.substr(0, word.size() - 1), n, std::chars_format::fixed) && n > 0 && n < INT_MAX)
      return Interval(std::chrono::duration<double>(n * seconds));
  return {};
}

namespace {

// Names the first tensor that is not finite. Tensors are checked before the tensors that are computed from them.
std::string not_finite(const nn::Module& model, const Examples& batch) {
  if (!is_finite(batch.inputs)) return "the inputs of the batch are not finite";
  if (!is_finite(batch.targets)) return "the targets of the batch are not finite";
  for (size_t i = 0; i < batch.more.size(); ++i)
    if (!is_finite(batch.more[i])) return text("tensor ", i + 2, " of the batch is not finite");
  for (const nn::NamedParameter& p : model.named_parameters())
    if (!is_finite(p.tensor.grad())) return "the gradient of " + p.name + " is not finite";
  for (const nn::NamedParameter& p : model.named_parameters())
    if (!is_finite(p.tensor)) return p.name + " is not finite";
  return "batch, gradients and weights are finite";
}

}  // namespace

bool is_finite(const Tensor& x) {
  if (!x.defined() || !is_floating(x.dtype())) return true;
  const Tensor packed = contiguous(to(detach(x), kCpu));
  return visit_floating(x.dtype(), "is_finite", [&]<class T>() {
    const T* values = packed.data<T>();
    int64_t others = 0;
    for (int64_t i = 0; i < packed.numel(); ++i) others += !std::isfinite(static_cast<double>(values[i]));
    return others == 0;
  });
}

std::string not_finite(const TensorMap& state) {
  for (const auto& [name, tensor] : state)
    if (!is_finite(tensor)) return name;
  return {};
}

Loop::Loop(Step& step, Batches batches, Rate rate, LoopOptions options)
    : step_(step), batches_(std::move(batches)), rate_(std::move(rate)), options_(options) {}

void Loop::check_finite(const TrainingStep& s, const Examples& batch) const {
  const bool loss = std::isfinite(s.loss);
  if (!options_.stop_at_nan || (loss && std::isfinite(s.gradient_norm.value_or(0)))) return;
  check(false, "loop: step ", s.step, ": ", loss ? "the norm of the gradients is " : "the loss is ",
        loss ? *s.gradient_norm : s.loss, ": ", not_finite(step_.model(), batch),
        "; an AnomalyMode names the op that makes the first NaN");
}

void Loop::every(Interval interval, Callback callback) {
  check(interval.steps >= 0, "loop: every ", interval.steps, " steps, expected 0 or more");
  check(interval.seconds >= 0, "loop: every ", interval.seconds, " seconds, expected 0 or more");
  calls_.push_back({interval, std::move(callback), watch_.seconds()});
}

bool Loop::is_due(const Call& call, int step) {
  const Interval& i = call.interval;
  if (i.seconds == 0) return i.steps > 0 && step % i.steps == 0;
  const bool over = watch_.seconds() - call.last >= i.seconds;
  return step_.group() ? step_.group()->any(over) : over;
}

bool Loop::run(int steps, int done) {
  bool go_on = true;
  for (done_ = done; done_ < steps && go_on;) {
    const int t = done_;
    TrainingStep s{.step = t + 1, .lr = rate_(t)};
    const Examples batch = batches_(t);
    const StepResult r = step_(batch, s.lr);
    done_ = s.step;
    s.loss = r.loss, s.gradient_norm = r.gradient_norm;
    check_finite(s, batch);
    s.seconds = watch_.seconds();
    for (Call& call : calls_)
      if (is_due(call, s.step)) {
        go_on = call.callback(s) && go_on;
        call.last = watch_.seconds();
      }
  }
  return go_on;
}

}  // namespace isonorm::training
