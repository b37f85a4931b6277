#include "optim/plateau.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace isonorm::optim {
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
