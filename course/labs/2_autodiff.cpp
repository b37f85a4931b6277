#include "labs/2_autodiff.h"

#include <cmath>
#include <stdexcept>

using namespace isonorm;

namespace course {

Var Tape::record(double value, std::vector<Input> inputs) {
  entries_.push_back({value, std::move(inputs)});
  return {entries_.size() - 1};
}

Var Tape::leaf(double value) { return record(value, {}); }

Var Tape::add(Var a, Var b) {
  // solution: record the value, and the derivatives by a and by b
  return record(value(a) + value(b), {{a.place, 1}, {b.place, 1}});
  // end
}

Var Tape::mul(Var a, Var b) {
  // solution: the derivatives of ab; does it work if a and b are the same entry?
  return record(value(a) * value(b), {{a.place, value(b)}, {b.place, value(a)}});
  // end
}

Var Tape::tanh(Var a) {
  // solution: the derivative of tanh by its result
  const double y = std::tanh(value(a));
  return record(y, {{a.place, 1 - y * y}});
  // end
}

std::vector<double> Tape::backward(Var result) const {
  // solution: 1 for the result; then each entry, from the last, passes its gradient times the slope to its inputs
  std::vector<double> gradient(entries_.size());
  gradient[result.place] = 1;
  for (size_t i = entries_.size(); i-- > 0;)
    for (const Input& input : entries_[i].inputs) gradient[input.place] += gradient[i] * input.slope;
  return gradient;
  // end
}

Tensor numeric_gradient(const Scalar& f, const Tensor& x, double h) {
  // solution: move one entry of a copy at a time; do not change x
  std::vector<double> at = x.to_vector<double>(), slopes;
  for (double& entry : at) {
    const double before = entry;
    entry = before + h;
    const double up = f(from_vector(at, x.shape())).item();
    entry = before - h;
    slopes.push_back((up - f(from_vector(at, x.shape())).item()) / (2 * h));
    entry = before;
  }
  return from_vector(slopes, x.shape());
  // end
}

Tensor hessian_times(const Scalar& f, const Tensor& x, const Tensor& v) {
  // solution: H v is the gradient of <gradient of f, v>; see create_graph in autograd/engine.h
  const Tensor at = x.clone().require_grad();
  const Tensor slope = grad(f(at), {at}, {.create_graph = true})[0];
  return grad((slope * v).sum(), {at})[0];
  // end
}

}  // namespace course
