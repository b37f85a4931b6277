// OpCase: one row per public op. The tests of values, layouts, dtypes, gradients, bits and messages
// (tests/ops_test.cpp) and the op's line in docs/ops.md follow from it. docs/adding_an_op.md and the rows in
// tests/op_cases show how to write one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/tolerance.h"

namespace isonorm::test {

// One call: inputs, the public function, and the same function in plain double-precision loops.
struct Sample {
  std::string label;  // attributes; together with the shapes it names the sample uniquely within an op
  Arrays inputs;
  std::function<Tensors(const Tensors&)> run;
  std::function<Arrays(const Arrays&)> reference;
  std::function<std::string(const Tensors& outputs)> verify =
      {};                                   // for random results: replaces the reference; returns "" or a complaint
  double length = 1;                        // of the longest reduction, for the tolerance
  std::optional<Tolerance> tolerance = {};  // replaces the row's tolerance
  bool gradient = true;  // false: compare values only (special values, points at which the function is not smooth)
  bool layouts = true;   // false: contiguous inputs only
  bool large = false;    // enough elements for several threads; its gradient is compared between thread counts only
  bool recorded_bits = true;  // false: recording runs another algorithm, whose values agree only up to rounding
  double slope = 0;           // size of the terms in a gradient's sum, if they cancel
  double absolute = 0;        // GradcheckOptions::absolute
  bool composed = true;       // a fused op is compared with its composition, too; false if terms cancel

  std::string name() const;  // "[2, 3] x [3] dim 1"
};

// A call that must throw one line that begins with the op's name and contains all of `words`.
struct BadCall {
  std::function<void()> call;
  std::vector<std::string> words;
};

// Adapts f to lists: f takes a list, or its one to three elements, and returns a list, or one result.
template <class Out, class In, class F> std::function<std::vector<Out>(const std::vector<In>&)> as_list(F f) {
  if constexpr (std::is_invocable_v<F, const In&>)
    return as_list<Out, In>([f](const std::vector<In>& x) { return f(x[0]); });
  else if constexpr (std::is_invocable_v<F, const In&, const In&>)
    return as_list<Out, In>([f](const std::vector<In>& x) { return f(x[0], x[1]); });
  else if constexpr (std::is_invocable_v<F, const In&, const In&, const In&>)
    return as_list<Out, In>([f](const std::vector<In>& x) { return f(x[0], x[1], x[2]); });
  else if constexpr (std::is_same_v<std::invoke_result_t<F, const std::vector<In>&>, Out>)
    return [f](const std::vector<In>& x) { return std::vector<Out>{f(x)}; };
  else
    return f;
}

struct OpCase {
  std::string name;   // of the public function
  std::string group;  // heading in docs/ops.md
  // As declared, without "const Tensor&": "sum(x, std::vector<int> dims = {}, bool keepdim = false)".
  std::string signature;
  std::string formula;
  Tolerance tolerance = tolerance::elementary;
  bool differentiable = true;
  bool zero = false;  // the gradient is zero by mathematics; otherwise some sample must have a non-zero gradient
  std::vector<DType> dtypes = {DType::f64, DType::f32, DType::bf16};  // of the floating inputs
  bool refuses = true;                                                // false: it accepts everything
  bool stretch_rows = true;      // false: the op divides by the spread of a row, which must not be 0
  size_t parameters = SIZE_MAX;  // for fused ops: FusedCase::parameters
  int checks = 20;               // minimum number of gradient checks with distinct shapes and values
  Draw draw = Draw(name);        // of its inputs
  std::vector<Sample> samples = {};
  std::vector<BadCall> bad = {};

  // Adds a sample. `run` maps Tensors, `reference` maps Arrays; both may take and return single objects instead of
  // lists.
  template <class Run, class Reference> Sample& add(std::string label, Arrays inputs, Run run, Reference reference) {
    Sample s;
    s.label = std::move(label);
    s.inputs = std::move(inputs);
    s.run = as_list<Tensor, Tensor>(std::move(run));
    s.reference = as_list<Array, Array>(std::move(reference));
    return samples.emplace_back(std::move(s));
  }
  // Adds a sample without inputs and with a random result, which `verify` checks.
  Sample& add_random(std::string label, std::function<Tensor()> run, std::function<std::string(const Tensor&)> verify) {
    Sample s;
    s.label = std::move(label);
    s.run = [run = std::move(run)](const Tensors&) { return Tensors{run()}; };
    s.verify = [verify = std::move(verify)](const Tensors& y) { return verify(y[0]); };
    return samples.emplace_back(std::move(s));
  }
  void refuse(std::vector<std::string> words, std::function<void()> call) {
    bad.push_back({std::move(call), std::move(words)});
  }
};

// A fused op and the composition of ordinary ops that defines it. Values, and gradients for every subset of used
// outputs, must agree in f64. In bf16 the gradients must belong to the function that was computed: to `stored` in f64.
struct FusedCase {
  std::string name;
  size_t parameters = SIZE_MAX;  // inputs from this index on may be f32 with bf16 rows
  struct Sample {
    std::string label;
    Arrays inputs;
    std::function<Tensors(const Tensors&)> fused, reference;
    // The composition in f64. stored(x) is the value that the fused op uses further after it stores x in bf16.
    using Stored = Tensor (*)(const Tensor& x);
    std::function<Tensors(const Tensors&, Stored)> stored = {};  // empty: it reads nothing that it stores
    double slope = 0;  // size of the terms in a gradient's sum, if they cancel
  };
  std::vector<Sample> samples = {};
};

// All rows, in the order of docs/ops.md.
const std::vector<OpCase>& op_cases();
const std::vector<FusedCase>& fused_cases();

}  // namespace isonorm::test
