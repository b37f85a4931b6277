// ReduceOnPlateau against the rates that PyTorch 2.x prints, and its state.
#include "optim/schedule.h"

#include <cmath>
#include <vector>

#include "core/view.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

const std::vector<double> kLosses = {3,      2.5, 2.4999, 2.6, 2.49985, 2.4, NAN, 2.4, 2.39, 2.5,
                                     2.5,    2.5, 2.5,    2.5, 2,       2.1, 2,   2.1, 2,    1.9999,
                                     1.9998, 1.9, 1.9,    1.9, 1.9,     1.9, 1.9, 1.9, 1.9,  1.9};

// The losses (counted from 1) after which the rate of a ReduceLROnPlateau on kLosses fell, and the new rate.
struct Printed {
  optim::PlateauOptions options;
  std::vector<std::pair<size_t, double>> falls;
};

const Printed kPrinted[] = {
    {{.patience = 1},
     {{4, 0.010000000000000002},
      {8, 0.0010000000000000002},
      {11, 0.00010000000000000003},
      {13, 1.0000000000000004e-05},
      {17, 1.0000000000000004e-06},
      {19, 1.0000000000000005e-07},
      {21, 1.0000000000000005e-08}}},
    {{.factor = 0.5, .patience = 2, .threshold = 0.01, .cooldown = 2},
     {{5, 0.05}, {10, 0.025}, {18, 0.0125}, {25, 0.00625}, {30, 0.003125}}},
    {{.factor = 0.3, .patience = 0, .threshold = 0.05, .relative = false, .min_lr = 1e-3},
     {{3, 0.03}, {4, 0.009}, {5, 0.0026999999999999997}, {7, 0.001}}},
    {{.factor = 0.5, .patience = 0, .threshold = 0, .eps = 1e-3},
     {{4, 0.05}, {7, 0.025}, {8, 0.0125}, {10, 0.00625}, {11, 0.003125}, {12, 0.0015625}}},
    {{.patience = 3, .relative = false, .cooldown = 1},
     {{13, 0.010000000000000002}, {19, 0.0010000000000000002}, {26, 0.00010000000000000003}}},
};

}  // namespace

TEST_CASE("reduce on plateau has the rates of torch's ReduceLROnPlateau") {
  for (const Printed& torch : kPrinted) {
    optim::ReduceOnPlateau plateau(0.1, torch.options);
    CHECK(plateau(0) == 0.1);
    double rate = 0.1;
    auto next = torch.falls.begin();
    for (size_t i = 0; i < kLosses.size(); ++i) {
      const bool falls = next != torch.falls.end() && next->first == i + 1;
      if (falls) rate = next++->second;
      INFO("configuration " << &torch - kPrinted << ", loss " << i + 1);
      CHECK(plateau.take(kLosses[i]) == falls);
      CHECK(plateau.lr() == rate);
    }
    CHECK(next == torch.falls.end());
    CHECK(plateau.factor() == rate / 0.1);
  }
}

TEST_CASE("reduce on plateau continues from its state") {
  for (const Printed& torch : kPrinted)
    for (size_t stop = 0; stop <= kLosses.size(); ++stop) {
      optim::ReduceOnPlateau begun(0.1, torch.options), resumed(0.1, torch.options);
      for (size_t i = 0; i < stop; ++i) begun.take(kLosses[i]);
      resumed.take(1e-9), resumed.take(1);  // load_state_dict() must replace this
      resumed.load_state_dict(begun.state_dict());
      for (size_t i = stop; i < kLosses.size(); ++i) resumed.take(kLosses[i]);
      CHECK(resumed.lr() == torch.falls.back().second);
    }
}

TEST_CASE("reduce on plateau refuses options and states out of range") {
  CHECK_THROWS_WITH(optim::ReduceOnPlateau(0), "reduce on plateau: lr is 0, expected a finite number above 0");
  CHECK_THROWS_WITH(optim::ReduceOnPlateau(1, {.factor = 1}), Contains("factor is 1, expected a number in [0, 1)"));
  CHECK_THROWS_WITH(optim::ReduceOnPlateau(1, {.patience = -1}), Contains("patience is -1"));
  CHECK_THROWS_WITH(optim::ReduceOnPlateau(1, {.threshold = 1}), Contains("threshold is 1"));
  CHECK_NOTHROW(optim::ReduceOnPlateau(1, {.threshold = 1, .relative = false}));
  CHECK_THROWS_WITH(optim::ReduceOnPlateau(1, {.cooldown = -1}), Contains("cooldown is -1"));
  CHECK_THROWS_WITH(optim::ReduceOnPlateau(1, {.min_lr = NAN}), Contains("min_lr is "));
  CHECK_THROWS_WITH(optim::ReduceOnPlateau(1, {.eps = -1}), Contains("eps is -1"));

  optim::ReduceOnPlateau plateau(0.1, {.patience = 1});
  plateau.take(2);
  const TensorMap good = plateau.state_dict();
  const auto with = [&](const std::string& name, const Tensor& value) {
    TensorMap state;
    for (const auto& [key, x] : good)
      if (key != name) state.add(key, x);
    if (value.defined()) state.add(name, value);
    return state;
  };
  const Tensor zero = from_vector<double>({0}, Dims()), negative = from_vector<int64_t>({-1}, Dims());
  const std::pair<TensorMap, const char*> wrong[] = {
      {with("lr", {}), "reduce on plateau: the state 'lr' is missing"},
      {with("bad", zero), "reduce on plateau: the state 'bad' is f64 [], expected one i64"},
      {with("bad", negative), "reduce on plateau: the state 'bad' is -1, expected a number from 0"},
      {with("cooldown", negative), "reduce on plateau: the state 'cooldown' is -1, expected a number from 0"},
      {with("lr", from_vector<double>({INFINITY}, Dims())), "the state 'lr' is inf, expected a finite number from 0"},
      {with("best", from_vector<double>({NAN}, Dims())), "the state 'best' is "},
      {with("more", zero), "reduce on plateau: the state has 5 entries, expected 4"}};
  for (const auto& [state, says] : wrong) {
    CHECK_THROWS_WITH(plateau.load_state_dict(state), Contains(says));
    for (const auto& [name, x] : plateau.state_dict()) CHECK(x.item() == good.at(name).item());
  }
}
