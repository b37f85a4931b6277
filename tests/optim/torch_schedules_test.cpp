// The schedules that PyTorch has, too, against the rates that PyTorch 2 prints.
#include <cmath>
#include <vector>

#include "optim/schedule.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

template <class Rates> void check_rates(const Rates& rates, const std::vector<double>& torch) {
  for (size_t t = 0; t < torch.size(); ++t) {
    INFO("step " << t);
    CHECK(rates(static_cast<int64_t>(t)) == Approx(torch[t]).epsilon(1e-10).margin(1e-15));
  }
}

}  // namespace

TEST_CASE("step decay has the rates of torch's StepLR") {
  check_rates(optim::StepDecay{.peak = 0.8, .step_size = 3, .gamma = 0.5},
              {0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1});
  CHECK_THROWS_WITH(optim::StepDecay{}(0), "step decay: step_size is 0, expected a number above 0");
  CHECK_THROWS_WITH((optim::StepDecay{.step_size = 1}(-1)), Contains("step is -1"));
  CHECK_THROWS_WITH((optim::StepDecay{.step_size = 1, .gamma = -1}(0)), Contains("gamma is -1"));
}

TEST_CASE("one cycle has the rates of torch's OneCycleLR, and stays at the last one") {
  check_rates(optim::OneCycle{.peak = 0.8, .steps = 10},
              {0.03200000000000003, 0.41600000000000004, 0.8, 0.7603877056107791, 0.6493965231598104,
               0.48900961754903144, 0.3109935824509686, 0.1506066768401896, 0.03961549438922103, 3.2e-06, 3.2e-06});
  check_rates(optim::OneCycle{.peak = 0.8, .steps = 10, .linear = true},
              {0.032, 0.41600000000000004, 0.8, 0.6857147428571428, 0.5714294857142858, 0.4571442285714286,
               0.34285897142857147, 0.22857371428571427, 0.11428845714285718, 3.2e-06});
  CHECK(optim::OneCycle{.peak = 1, .steps = 4, .pct_start = 0.25}(0) == 1);  // no step in which the rate rises
  CHECK(optim::OneCycle{.peak = 1, .steps = 4, .pct_start = 1}(3) == 1);
  CHECK(std::isfinite(optim::OneCycle{.peak = 1, .steps = 1, .pct_start = 1}(0)));
  CHECK_THROWS_WITH(optim::OneCycle{}(0), "one cycle: steps is 0, expected a number above 0");
  CHECK_THROWS_WITH((optim::OneCycle{.steps = 3, .pct_start = 2}(0)), Contains("pct_start is 2"));
  CHECK_THROWS_WITH((optim::OneCycle{.steps = 3, .div_factor = 0}(0)), Contains("a factor is 0"));
}
