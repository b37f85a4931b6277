#include "examples/workshop/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "examples/workshop/reference.h"

namespace isonorm::workshop {
namespace {

// y, dx, dgain and dbias of a step. Entries that the step does not write are NaN.
std::vector<std::vector<float>> results(const Task& task, const Step& step, int threads) {
  const Tensor written[] = {task.out.y, task.gradients.dx, task.gradients.dgain, task.gradients.dbias};
  for (const Tensor& t : written) fill(t, NAN);
  fill(task.out.stats, NAN);
  const int before = num_threads();
  set_num_threads(threads);
  task.forward(step);
  task.backward(step);
  set_num_threads(before);
  std::vector<std::vector<float>> values;
  for (const Tensor& t : written) values.push_back(t.to_vector<float>());
  return values;
}

// The largest |actual - expected| / tolerance; infinite if there is a NaN.
double largest_error(const std::vector<float>& actual, const ExpectedValues& expected) {
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(double{actual[i]} - expected.value[i]) / expected.tolerance;
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  return largest;
}

}  // namespace

void check_steps(const Task& task, std::span<StepErrors> errors) {
  const Reference r = reference(task.spec, task.in, task.dy);
  const ExpectedValues* expected[] = {&r.y, &r.dx, &r.dgain, &r.dbias};
  for (size_t s = 0; s < errors.size(); ++s) {
    const auto alone = results(task, steps()[s], 1), together = results(task, steps()[s], 3);
    for (size_t k = 0; k < alone.size(); ++k) {
      errors[s].error = std::max(errors[s].error, largest_error(alone[k], *expected[k]));
      errors[s].same_bits &= std::memcmp(alone[k].data(), together[k].data(), alone[k].size() * sizeof(float)) == 0;
    }
  }
}

}  // namespace isonorm::workshop
