// Rates at the corners of every schedule.
#include "tests/support/catch.h"

#include <cmath>
#include <vector>

#include "optim/schedule.h"

using Catch::Matchers::Contains;
using isonorm::optim::Decay;
using isonorm::optim::OneCycle;
using isonorm::optim::Schedule;
using isonorm::optim::StepDecay;

TEST_CASE("warm-up begins above zero and ends at the peak") {
  for (Decay decay : {Decay::constant, Decay::linear, Decay::cosine}) {
    const Schedule s{.peak = 0.8, .warmup = 4, .steps = 12, .decay = decay};
    CHECK(s.lr(0) == Approx(0.2));
    CHECK(s.lr(2) == Approx(0.6));
    CHECK(s.lr(3) == 0.8);
    CHECK(s.lr(4) == 0.8);
  }
}

TEST_CASE("decays run from the peak to the floor") {
  const Schedule cosine{.peak = 0.8, .warmup = 4, .steps = 12, .floor = 0.2};
  CHECK(cosine.lr(6) == Approx(0.2 + 0.6 * (1 + std::sqrt(0.5)) / 2).epsilon(1e-15));
  CHECK(cosine.lr(8) == Approx(0.5).epsilon(1e-15));
  CHECK(cosine.lr(11) > 0.2);
  CHECK(cosine.lr(12) == Approx(0.2).epsilon(1e-15));
  CHECK(cosine.lr(1000) == Approx(0.2).epsilon(1e-15));
  const Schedule linear{.peak = 0.8, .warmup = 4, .steps = 12, .decay = Decay::linear, .floor = 0.2};
  CHECK(linear.lr(6) == Approx(0.65));
  CHECK(linear.lr(8) == Approx(0.5));
  CHECK(linear.lr(99) == Approx(0.2));
  const Schedule constant{.peak = 0.8, .warmup = 2, .decay = Decay::constant};
  CHECK(constant.lr(0) == 0.4);
  CHECK(constant.lr(1000000) == 0.8);
  CHECK(Schedule{.peak = 1, .warmup = 3, .steps = 3}.lr(3) == 0);  // no room for a decay
  const Schedule root{.peak = 0.8, .warmup = 4, .decay = Decay::inverse_sqrt, .floor = 0.1};
  CHECK(root.lr(1) == Approx(0.4));
  CHECK(root.lr(3) == 0.8);
  CHECK(root.lr(15) == Approx(0.4).epsilon(1e-15));  // the 16th step: sqrt(4/16)
  CHECK(root.lr(1000000) == 0.1);
  CHECK(Schedule{.peak = 0.8, .decay = Decay::inverse_sqrt}.lr(3) == Approx(0.4).epsilon(1e-15));
}

TEST_CASE("bad schedules are refused") {
  CHECK_THROWS_WITH(Schedule{}.lr(0),
                    "schedule: steps is 0, expected the length of the training where the decay is linear or cosine");
  CHECK_THROWS_WITH((Schedule{.decay = Decay::linear}.lr(7)), Contains("steps is 0"));
  CHECK_THROWS_WITH(Schedule{.steps = 5}.lr(-1), Contains("step is -1"));
  CHECK_THROWS_WITH((Schedule{.warmup = 6, .steps = 5}.lr(0)), Contains("warmup is 6") && Contains("steps is 5"));
  CHECK_THROWS_WITH((Schedule{.peak = -1, .steps = 5}.lr(0)), Contains("peak is -1"));
  CHECK_THROWS_WITH((Schedule{.steps = 5, .floor = std::nan("")}.lr(0)), Contains("floor is nan"));
}

TEST_CASE("steps of the rate and one cycle are PyTorch's") {
  // torch.optim.lr_scheduler.StepLR(optimizer of lr 0.5, 3, 0.5) and OneCycleLR of torch 2.15 print these.
  const StepDecay steps{.peak = 0.5, .every = 3, .factor = 0.5};
  const std::vector<double> halved = {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125};
  for (size_t t = 0; t < halved.size(); ++t) CHECK(steps.lr(static_cast<int64_t>(t)) == halved[t]);
  const OneCycle ten{.peak = 0.5, .steps = 10};
  const std::vector<double> of_ten = {0.02,
                                      0.26,
                                      0.5,
                                      0.47524231600673683,
                                      0.40587282697488153,
                                      0.30563101096814466,
                                      0.19437098903185537,
                                      0.09412917302511849,
                                      0.024759683993263143,
                                      2e-06};
  for (size_t t = 0; t < of_ten.size(); ++t) CHECK(ten.lr(static_cast<int64_t>(t)) == Approx(of_ten[t]).epsilon(1e-13));
  CHECK(ten.lr(1000) == Approx(2e-6));
  const OneCycle seven{.peak = 0.5, .steps = 7, .rise = 0.5, .start_divisor = 10, .end_divisor = 100};
  const std::vector<double> of_seven = {
      0.05,  0.20547117626563682, 0.45702882373436315, 0.47526697475862917, 0.3058246032555895, 0.09453342198578131,
      0.0005};
  for (size_t t = 0; t < of_seven.size(); ++t)
    CHECK(seven.lr(static_cast<int64_t>(t)) == Approx(of_seven[t]).epsilon(1e-13));
}

TEST_CASE("bad steps of the rate and cycles are refused") {
  CHECK_THROWS_WITH(StepDecay{}.lr(0), "schedule: every is 0, expected the number of steps at one rate");
  CHECK_THROWS_WITH((StepDecay{.every = 2, .factor = -1}.lr(0)), Contains("factor is -1"));
  CHECK_THROWS_WITH((StepDecay{.every = 2}.lr(-1)), Contains("step is -1"));
  CHECK_THROWS_WITH(OneCycle{}.lr(0), "schedule: steps is 0, expected the length of the training");
  CHECK_THROWS_WITH((OneCycle{.steps = 3, .rise = 1.5}.lr(0)), Contains("rise is 1.5"));
  CHECK_THROWS_WITH((OneCycle{.steps = 3, .end_divisor = 0}.lr(0)), Contains("a divisor is 0"));
  CHECK(OneCycle{.peak = 1, .steps = 1}.lr(0) == Approx(1 / 25e4));
}
