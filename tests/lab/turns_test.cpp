// Times in turns: intervals of medians, rounds, and conclusions from simulated times.
#include "lab/papers/timing/turns.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.h"

using namespace isonorm::papers;

TEST_CASE("the interval of a median misses it as seldom as it says") {
  CHECK(median_of({4, 1, 3, 2}).median == 2.5);
  CHECK(median_of({9, 7, 8, 1, 2}).median == 7);
  CHECK(std::isinf(median_of({1, 2, 3, 4, 5, 6, 7, 8, 9}).low));  // 2^-9 is above 0.001
  std::vector<double> ten = {3, 1, 2, 5, 4, 10, 9, 8, 7, 6};
  CHECK((median_of(ten).low == 1 && median_of(ten).high == 10));  // 2^-10 is below it
  std::vector<double> twenty;
  for (int i = 1; i <= 20; ++i) twenty.push_back(i);
  // In 20 tosses, at most 3 are heads with probability 1351/2^20 = 0.00129, at most 2 with 211/2^20 = 0.0002.
  CHECK((median_of(twenty).low == 3 && median_of(twenty).high == 18));
  std::vector<double> many;
  for (int i = 1; i <= 2001; ++i) many.push_back(i);
  // In n tosses, at most n/2 - 3.09 sqrt(n)/2 are heads with probability 0.001 (normal approximation).
  CHECK(std::abs(median_of(many).low - (1000.5 - 3.0902 * std::sqrt(2001) / 2)) < 2);
  CHECK(median_of(many).low + median_of(many).high == 2002);
  std::mt19937_64 random(1);
  int missed = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<double> v;
    for (int i = 0; i < 25; ++i) v.push_back(std::exp(std::normal_distribution<double>()(random)));  // median 1
    const Median m = median_of(v);
    missed += m.low > 1 || m.high < 1;
  }
  CHECK(missed < 40 + 5 * std::sqrt(40.0));  // 0.002 of them plus five standard deviations
  CHECK(missed > 0);
}

TEST_CASE("works run in turns, each round from another one, and ratios are those of a round") {
  std::vector<int> order;
  int calls = 0;
  // The machine becomes slower from round to round, which does not change the ratio.
  const auto work = [&](int name, double factor) {
    return [&order, &calls, name, factor] {
      order.push_back(name);
      return factor * (1 + calls++ / 3);
    };
  };
  const std::vector<std::function<double()>> works = {work(0, 1), work(1, 2), work(2, 0.5)};
  const Turns t = in_turns(works, {.seconds = 0, .fewest = 4});
  CHECK(t.rounds == 4);
  CHECK(order == std::vector<int>{0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2});
  REQUIRE(t.ratio.size() == 3);
  CHECK((t.ratio[0].median == 1 && t.ratio[1].median == 2 && t.ratio[2].median == 0.5));
  CHECK(t.seconds == 3.5);  // the median of 2, 3, 4 and 5
  CHECK(in_turns(works, {.seconds = 1e9, .fewest = 1, .most = 7}).rounds == 7);
}

TEST_CASE("steps keep their losses and times; what two shares differ by in chance") {
  TimedSteps one, other;
  for (int i = 0; i < 25; ++i) one.add([&] { return i; });
  CHECK(one.losses.size() == 25);
  CHECK(*std::min_element(one.seconds.begin(), one.seconds.end()) >= 0);
  CHECK(one.means(10) == std::vector<double>{4.5, 14.5});
  for (int i = 0; i < 25; ++i) one.seconds[i] = i < 10 ? 100 : 3 * (i + 1), other.seconds.push_back(i + 1);
  CHECK((one.time_ratio(other).low == 3 && one.time_ratio(other).high == 3));
  CHECK(two_standard_errors(0.4, 0.6, 200) == Approx(2 * std::sqrt(2 * 0.25 / 200)));
  CHECK(two_standard_errors(0, 0, 100) == Approx(2 * std::sqrt(2 * 0.01 * 0.99 / 100)));
}

TEST_CASE("a lead is what lies beyond both intervals") {
  Lead lead;
  CHECK_FALSE(lead.kept());
  CHECK_FALSE(lead.lost());
  lead.count({0.97, 0.99, 1.01}, {1, 1, 1});  // within the noise
  CHECK((lead.ahead == 0 && lead.behind == 0));
  lead.count({0.90, 0.93, 0.96}, {0.97, 1, 1.03});
  CHECK((lead.kept() && !lead.lost()));
  lead.count({0.90, 0.93, 0.98}, {0.97, 1, 1.03});  // they overlap
  CHECK((lead.ahead == 1 && lead.behind == 0));
  lead.count({1.1, 1.2, 1.3}, {0.97, 1, 1.03});
  CHECK((!lead.kept() && !lead.lost()));  // one each: no conclusion
  lead.count({1.1, 1.2, 1.3}, {0.97, 1, 1.03});
  CHECK((!lead.kept() && lead.lost()));
}
