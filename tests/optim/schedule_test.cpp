// Learning rates at the corners of every schedule.
#include "tests/support/catch.h"

#include <cmath>

#include "optim/schedule.h"

using Catch::Matchers::Contains;
using isonorm::optim::Decay;
using isonorm::optim::Schedule;

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
  CHECK(Schedule{.peak = 1, .warmup = 3, .steps = 3}.lr(3) == 0);  // no steps left for a decay
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
