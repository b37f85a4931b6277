// Internal: times of several functions on a machine with other load: they run in turns, and ratios are taken per round.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reports/text_table.h"

namespace isonorm::papers {

// A median with its confidence interval: the true median lies below `low`, and above `high`, with probability at most
// 0.001 each, for any distribution (the interval of the sign test: each value lies above the median as often as a
// tossed coin shows heads). With fewer than ten values the bounds are infinite.
struct Median {
  double low, median, high;
};
// Computes the median; for an even number of values, the mean of the middle two. `values` must not be empty.
Median median_of(std::vector<double> values);

// "1.02 (0.98 to 1.05)" with `digits` digits after the point.
reports::TextCell ratio_cell(const Median& ratio, int digits);

// Describes the machine on which the times were measured: "8 threads, OpenBLAS 0.3.21 Haswell".
std::string machine_text();

struct TurnsOptions {
  double seconds = 1;           // no new round begins after this time,
  int fewest = 11, most = 200;  // within these numbers of rounds
};

struct Turns {
  double seconds = 0;         // median time of the first function
  std::vector<Median> ratio;  // time of each function divided by the first one's, in the same round
  int rounds = 0;
};

// Times functions that return their own seconds. All run once unmeasured, then in rounds; each round starts with the
// next function.
Turns in_turns(std::span<const std::function<double()>> works, const TurnsOptions& options = {});

// Losses and times of the steps of a training.
struct TimedSteps {
  std::vector<double> losses, seconds;

  // Runs step(), which returns the loss, and records its loss and time.
  void add(const std::function<double()>& step);
  // Means of `of` consecutive losses each.
  std::vector<double> means(size_t of) const;
  // Each step's time divided by that step's time in `reference`: the median without the first ten steps.
  Median time_ratio(const TimedSteps& reference) const;
};

// Two standard errors of the difference of two fractions, each estimated from n draws. The mean of the two counts as at
// least 1 / n.
double two_standard_errors(double share, double other, int64_t n);

// Counts the medians that are below another with disjoint intervals (ahead), or above it (behind).
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
