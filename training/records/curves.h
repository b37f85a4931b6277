// Internal: curves of a chart from the log of a training, one value per step.
#pragma once

#include <cmath>
#include <functional>
#include <limits>

#include "training/records/training_result.h"

namespace isonorm::training {

inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();  // interrupts a line

// Returns at each step the mean over the last `window` values; kNothing before the window is full.
inline std::vector<double> running_mean(const std::vector<double>& values, size_t window) {
  std::vector<double> means(values.size(), kNothing);
  for (size_t t = window; t <= values.size(); ++t) {
    double sum = 0;
    for (size_t i = t - window; i < t; ++i) sum += values[i];
    means[t - 1] = sum / static_cast<double>(window);
  }
  return means;
}

// Returns a value for each step from 1 on; kNothing for steps that are missing in the log.
inline std::vector<double> per_step(const TrainingCourse& course,
                                    const std::function<double(const TrainingStep&)>& value) {
  std::vector<double> values(course.steps.empty() ? 0 : static_cast<size_t>(course.steps.back().step), kNothing);
  for (const TrainingStep& s : course.steps) values[static_cast<size_t>(s.step - 1)] = value(s);
  return values;
}

// Returns a value for each step, interpolated linearly between evaluations.
inline std::vector<double> between(const std::vector<Evaluation>& evaluations,
                                   const std::function<double(const Evaluation&)>& value) {
  std::vector<double> values(static_cast<size_t>(evaluations.back().step), kNothing);
  for (size_t i = 1; i < evaluations.size(); ++i) {
    const Evaluation &a = evaluations[i - 1], &b = evaluations[i];
    for (int step = std::max(1, a.step); step <= b.step; ++step) {
      const double part = static_cast<double>(step - a.step) / (b.step - a.step);
      values[static_cast<size_t>(step - 1)] = value(a) + part * (value(b) - value(a));
    }
  }
  return values;
}

}  // namespace isonorm::training
