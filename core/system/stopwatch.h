// Measures time, and the speed of a long task for a progress line.
#pragma once

#include <chrono>
#include <deque>

namespace isonorm {

// Starts when it is constructed.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The speed at which an amount grew in the last 30 seconds, or between the last two points if they are further apart.
// After a pause (SIGSTOP, a suspended machine) the rate is right again after the next two points.
class MovingRate {
 public:
  // The task begins with `amount` at the time `seconds`.
  explicit MovingRate(double seconds = 0, double amount = 0) { points_.push_back({seconds, amount}); }

  // The task has reached `amount` at the time `seconds`. Neither ever decreases.
  void add(double seconds, double amount) {
    constexpr double window = 30, grain = 0.25;  // seconds; two points at least this far apart are kept
    if (points_.size() > 1 && seconds - points_[points_.size() - 2].seconds < grain) points_.pop_back();
    points_.push_back({seconds, amount});
    while (points_.size() > 2 && points_.front().seconds < seconds - window) points_.pop_front();
  }

  // 0 if the rate is not known yet.
  double per_second() const {
    const double seconds = points_.back().seconds - points_.front().seconds;
    return seconds > 0 ? (points_.back().amount - points_.front().amount) / seconds : 0;
  }

  // Seconds until the amount is `whole`; infinite or NaN if the rate is 0.
  double seconds_left(double whole) const { return (whole - points_.back().amount) / per_second(); }

 private:
  struct Point {
    double seconds, amount;
  };
  std::deque<Point> points_;
};

}  // namespace isonorm
