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
  // solution: the derivative of tanh by its result; std::tanh() is the function of numbers, tanh() is this member
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

std::vector<double> gradients(const Graph& graph, size_t result) {
  // solution: list the entries so that each stands after its inputs (depth first), then go through the list from its end
  std::vector<size_t> order;
  std::vector<bool> seen(graph.size());
  const std::function<void(size_t)> visit = [&](size_t i) {
    if (seen[i]) return;
    seen[i] = true;
    for (const Input& input : graph[i]) visit(input.place);
    order.push_back(i);
  };
  visit(result);
  std::vector<double> gradient(graph.size());
  gradient[result] = 1;
  for (size_t k = order.size(); k-- > 0;)
    for (const Input& input : graph[order[k]]) gradient[input.place] += gradient[order[k]] * input.slope;
  return gradient;
  // naive: every visit of an entry passes its gradient on
  std::vector<double> gradient(graph.size());
  const std::function<void(size_t)> pass = [&](size_t i) {
    for (const Input& input : graph[i]) gradient[input.place] += gradient[i] * input.slope;
    for (const Input& input : graph[i]) pass(input.place);
  };
  gradient[result] = 1;
  pass(result);
  return gradient;
  // naive: each entry once, when it is first met
  std::vector<double> gradient(graph.size());
  std::vector<bool> seen(graph.size());
  const std::function<void(size_t)> pass = [&](size_t i) {
    seen[i] = true;
    for (const Input& input : graph[i]) gradient[input.place] += gradient[i] * input.slope;
    for (const Input& input : graph[i])
      if (!seen[input.place]) pass(input.place);
  };
  gradient[result] = 1;
  pass(result);
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
