#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace isonorm::optim {

double Schedule::lr(int64_t step) const {
  check(step >= 0, "schedule: step is ", step, ", expected a number from 0");
  check(peak >= 0 && std::isfinite(peak), "schedule: peak is ", peak, ", expected a finite number from 0");
  check(floor >= 0 && std::isfinite(floor), "schedule: floor is ", floor, ", expected a finite number from 0");
  const bool ends = decay == Decay::linear || decay == Decay::cosine;
  check(!ends || steps > 0, "schedule: steps is ", steps,
        ", expected the length of the training where the decay is linear or cosine");
  check(warmup >= 0 && (!ends || warmup <= steps), "schedule: warmup is ", warmup,
        ", expected a number in [0, steps], steps is ", steps);
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (decay == Decay::constant) return peak;
  if (decay == Decay::inverse_sqrt)
    return std::max(
        floor, peak * std::sqrt(static_cast<double>(std::max<int64_t>(1, warmup)) / static_cast<double>(step + 1)));
  const double x = step >= steps ? 1.0 : static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  if (decay == Decay::linear) return peak + (floor - peak) * x;
  return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

double StepDecay::lr(int64_t step) const {
  check(step >= 0, "step decay: step is ", step, ", expected a number from 0");
  check(step_size > 0, "step decay: step_size is ", step_size, ", expected a number above 0");
  check(peak >= 0 && std::isfinite(peak), "step decay: peak is ", peak, ", expected a finite number from 0");
  check(gamma >= 0 && std::isfinite(gamma), "step decay: gamma is ", gamma, ", expected a finite number from 0");
  return peak * std::pow(gamma, static_cast<double>(step / step_size));
}

double OneCycle::lr(int64_t step) const {
  check(step >= 0, "one cycle: step is ", step, ", expected a number from 0");
  check(steps > 0, "one cycle: steps is ", steps, ", expected a number above 0");
  check(peak >= 0 && std::isfinite(peak), "one cycle: peak is ", peak, ", expected a finite number from 0");
  check(pct_start >= 0 && pct_start <= 1, "one cycle: pct_start is ", pct_start, ", expected a number in [0, 1]");
  for (const double factor : {div_factor, final_div_factor})
    check(factor > 0 && std::isfinite(factor), "one cycle: a factor is ", factor, ", expected a finite number above 0");
  const double first = peak / div_factor, last = first / final_div_factor, end = static_cast<double>(steps - 1);
  const double t = std::min(static_cast<double>(step), end), turn = pct_start * static_cast<double>(steps) - 1;
  const auto between = [&](double from, double to, double x) {
    return linear ? from + (to - from) * x : to + (from - to) * (1 + std::cos(std::numbers::pi * x)) / 2;
  };
  if (t <= turn && turn > 0) return between(first, peak, t / turn);
  return between(peak, last, end > turn ? (t - turn) / (end - turn) : 1);
}

namespace {

void check_plateau(bool ok, const char* what, double value, const char* expected) {
  check(ok, "reduce on plateau: ", what, " is ", value, ", expected ", expected);
}

bool is_size(double x) { return x >= 0 && std::isfinite(x); }

}  // namespace

ReduceOnPlateau::ReduceOnPlateau(double lr, PlateauOptions o) : options_(o), first_lr_(lr), lr_(lr) {
  check_plateau(lr > 0 && std::isfinite(lr), "lr", lr, "a finite number above 0");
  check_plateau(o.factor >= 0 && o.factor < 1, "factor", o.factor, "a number in [0, 1)");
  check_plateau(o.patience >= 0, "patience", o.patience, "a number from 0");
  check_plateau(is_size(o.threshold) && !(o.relative && o.threshold >= 1), "threshold", o.threshold,
                o.relative ? "a number in [0, 1)" : "a finite number from 0");
  check_plateau(o.cooldown >= 0, "cooldown", o.cooldown, "a number from 0");
  check_plateau(is_size(o.min_lr), "min_lr", o.min_lr, "a finite number from 0");
  check_plateau(is_size(o.eps), "eps", o.eps, "a finite number from 0");
}

bool ReduceOnPlateau::take(double loss) {
  const PlateauOptions& o = options_;
  ++bad_;
  if (loss < (o.relative ? best_ * (1 - o.threshold) : best_ - o.threshold)) best_ = loss, bad_ = 0;
  if (cooldown_ > 0) --cooldown_, bad_ = 0;
  if (bad_ <= o.patience) return false;
  cooldown_ = o.cooldown, bad_ = 0;
  const double lower = std::max(lr_ * o.factor, o.min_lr);
  if (!(lr_ - lower > o.eps)) return false;
  lr_ = lower;
  return true;
}

TensorMap ReduceOnPlateau::state_dict() const {
  TensorMap state;
  for (const auto& [name, value] : {std::pair("lr", lr_), std::pair("best", best_)})
    state.add(name, from_vector<double>({value}, Dims()));
  for (const auto& [name, value] : {std::pair("bad", bad_), std::pair("cooldown", cooldown_)})
    state.add(name, from_vector<int64_t>({value}, Dims()));
  return state;
}

void ReduceOnPlateau::load_state_dict(const TensorMap& state) {
  const auto at = [&](const char* name, DType dtype) {
    const Tensor* t = state.find(name);
    check(t != nullptr, "reduce on plateau: the state '", name, "' is missing");
    check(t->dtype() == dtype && t->numel() == 1, "reduce on plateau: the state '", name, "' is ", t->dtype(), ' ',
          t->shape(), ", expected one ", dtype);
    return *t;
  };
  const double lr = at("lr", DType::f64).item(), best = at("best", DType::f64).item();
  const int64_t bad = at("bad", DType::i64).to_vector<int64_t>()[0];
  const int64_t cooldown = at("cooldown", DType::i64).to_vector<int64_t>()[0];
  check_plateau(is_size(lr), "the state 'lr'", lr, "a finite number from 0");
  check_plateau(!std::isnan(best), "the state 'best'", best, "a number");
  check_plateau(bad >= 0, "the state 'bad'", static_cast<double>(bad), "a number from 0");
  check_plateau(cooldown >= 0, "the state 'cooldown'", static_cast<double>(cooldown), "a number from 0");
  check(state.size() == 4, "reduce on plateau: the state has ", state.size(), " entries, expected 4");
  lr_ = lr, best_ = best, bad_ = bad, cooldown_ = cooldown;
}

}  // namespace isonorm::optim
