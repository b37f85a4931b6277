// Internal: Times of several works on a machine that does other things, too: in turns, as ratios within a round.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reports/text_table.h"

namespace isonorm::papers {

// A median, and where the median of what the values were drawn from lies: outside of [low, high] with a probability of
// 0.001 on each side at most, whatever their distribution (the sign test's interval: a median has as many heads as tails above
// it). Infinite bounds where there are fewer than ten values, of which nothing follows with that certainty.
struct Median {
  double low, median, high;
};
// Of one value at least; of an even number the mean of the middle two.
Median median_of(std::vector<double> values);

// "1.02 (0.98 to 1.05)", with so many digits.
reports::TextCell ratio_cell(const Median& ratio, int digits);

// "8 threads, OpenBLAS 0.3.21 Haswell": what times are of.
std::string machine_text();

struct TurnsOptions {
  double seconds = 1;           // rounds begin until so much is used up,
  int fewest = 11, most = 200;  // but so many at least and at most
};

struct Turns {
  double seconds = 0;         // the first work's median
  std::vector<Median> ratio;  // of every work's time to the first's of the same round
  int rounds = 0;
};

// Each work runs itself once and returns its seconds. All run once unmeasured; then in rounds, each of which begins with another one.
Turns in_turns(std::span<const std::function<double()>> works, const TurnsOptions& options = {});

// The steps of a training: their losses, and how long each took.
struct TimedSteps {
  std::vector<double> losses, seconds;

  // step() takes one and returns its loss.
  void add(const std::function<double()>& step);
  // Means of so many losses each, in their order.
  std::vector<double> means(size_t of) const;
  // Of each step's time to that of the same step of `reference`, but for the first ten.
  Median time_ratio(const TimedSteps& reference) const;
};

// Of the difference of two shares of n that were drawn; of shares of which none is one, one counts.
double two_standard_errors(double share, double other, int64_t n);

// How often one median lay below another for certain, their intervals apart, and how often above.
struct Lead {
  int ahead = 0, behind = 0;

  void count(const Median& one, const Median& other) {
    ahead += one.high < other.low;
    behind += one.low > other.high;
  }
  bool kept() const { return ahead > 0 && behind == 0; }
  bool lost() const { return behind > ahead; }
};

}  // namespace isonorm::papers
