// Lab 2: autodiff. 5 hours.
//
// Goal: write reverse mode for scalars, and use the library's for second derivatives.
// Read: examples/02_gradients.cpp; autograd/node.h, its comments; docs/architecture.md, idea 3.
// Do:   2_autodiff.cpp. The tape records; backward() goes through it once, from the end. For gradients(), first
//       compute c = b + b, b = a + a at a = 1 on paper: a recursion that passes on a gradient at each visit of b gives
//       dc/da = 8, not 4. Why?
// Hand in: 2_autodiff.cpp.
#pragma once

#include <functional>
#include <vector>

#include "support/library.h"

namespace course {

using isonorm::Tensor;

// The position of an entry on a tape.
struct Var {
  size_t place;
};

// An input of an entry, and the derivative of the entry with respect to it.
struct Input {
  size_t place;
  double slope;
};

// All computed values, in order. Each entry stores at most two inputs before it, with a derivative for each.
class Tape {
 public:
  Var leaf(double value);
  Var add(Var a, Var b);
  Var mul(Var a, Var b);
  Var tanh(Var a);
  double value(Var a) const { return entries_[a.place].value; }
  // d result / d entry for every entry of the tape, in its order.
  std::vector<double> backward(Var result) const;

 private:
  struct Entry {
    double value;
    std::vector<Input> inputs;
  };
  Var record(double value, std::vector<Input> inputs);
  std::vector<Entry> entries_;
};

// A graph without a tape: graph[i] are the inputs of entry i. Their places may be smaller or greater than i. No entry
// depends on itself.
using Graph = std::vector<std::vector<Input>>;

// d result / d entry for every entry of the graph. An entry passes its gradient on when all entries that use it have
// passed on theirs: in a topological order.
std::vector<double> gradients(const Graph& graph, size_t result);

using Scalar = std::function<Tensor(const Tensor&)>;  // returns one element

// The gradient of f at x, by central differences: (f(x + h e) - f(x - h e)) / 2h for every unit vector e. x is f64, of
// any shape.
// On paper: how does the error depend on h, and which h is best in f64 and in f32? Then run
// `isonorm explain layer_norm 1,2,4 --gradcheck`.
Tensor numeric_gradient(const Scalar& f, const Tensor& x, double h = 1e-5);

// The Hessian H of f at x times v, in the shape of x, by two backward passes without forming H.
Tensor hessian_times(const Scalar& f, const Tensor& x, const Tensor& v);

}  // namespace course
