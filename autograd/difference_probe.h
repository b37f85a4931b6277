// Internal: the two sides that gradcheck() compares: gradients of a function by autograd, and its difference quotients.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "autograd/gradcheck.h"

namespace isonorm::detail {

// True for f64. Throws for another floating dtype.
bool is_f64(const Tensor& x, const char* what);

// Random numbers with absolute values in [0.5, 1.5) and random signs.
std::vector<double> draw_cotangent(size_t count, std::mt19937_64& random);

// Evaluates f at the inputs and near them. <c, f> is the sum of its f64 outputs with random weights c. Keeps a
// reference to f.
class DifferenceProbe {
 public:
  using Values = std::vector<std::vector<double>>;

  // Throws if an input or output is f32 or bf16, f gives other values for the same inputs, or f writes to an input.
  DifferenceProbe(const TensorsFunction& f, const std::vector<Tensor>& inputs, uint64_t seed);

  const std::vector<Tensor>& inputs() const { return x_; }
  const std::vector<double>& at(size_t input) const { return at_[input]; }  // the values of an input
  const std::vector<int>& outputs() const { return numbers_; }              // indices of the f64 outputs
  bool has_outputs() const;                                                 // whether any output has an entry

  // Gradients of <c, f> by each f64 input; with `only`, just for the output outputs()[only]. 0 if f does not depend on
  // an input.
  Values gradients(std::optional<size_t> only = {});

  // A difference quotient along one entry of an input.
  struct Slope {
    std::vector<double> of;  // the slope of <c, output> for each of outputs()
    double size = 0;         // sum of |c f|: magnitude of the subtracted numbers
    // Whether an output is finite at the point but not at a shifted point, or vice versa; its slope is NaN then.
    bool outside = false;
    double total() const;
  };
  // (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h
  Slope central(size_t input, int64_t i, double h) const;
  // (f(x) - f(x - h)) / h and (f(x + h) - f(x)) / h
  std::pair<double, double> one_sided(size_t input, int64_t i, double h) const;

 private:
  struct Difference {
    double weight, forth, back;  // weight (f(x + forth h) - f(x - back h)) / h
  };
  Slope slope(size_t input, int64_t i, double h, std::initializer_list<Difference> differences) const;
  void record();            // sets outputs_
  Values evaluate() const;  // values of the f64 outputs
  void check_inputs() const;

  const TensorsFunction& f_;
  std::vector<Tensor> x_, leaves_;
  std::vector<Tensor> outputs_;  // empty after a backward
  std::vector<int> numbers_;
  Values at_, values_, c_;
};

}  // namespace isonorm::detail
