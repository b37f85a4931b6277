// Compares gradients with finite differences: tests an op, a layer or a loss without trusting its author.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

struct GradcheckOptions {
  double tolerance = 1e-7;  // largest accepted error, relative to the largest entry of the input's gradient
  double absolute = 0;      // entries up to this count as zero: for a gradient that is a difference of large terms
  double step = 0x1p-10;    // distance of the evaluations, relative to the spread of the entry's row
  bool zero = false;        // expects all gradients to be zero: sign(), floor(), detach(), ...
  uint64_t seed = 1;        // draws the cotangents
};

enum class GradcheckStatus {
  right,    // the gradients agree
  wrong,    // an entry differs, or is not zero although GradcheckOptions::zero says so
  nothing,  // nothing was measured: no input or no output has an entry of f64, or all gradients are zero
};

struct GradcheckResult {
  GradcheckStatus status = GradcheckStatus::nothing;
  bool ok = false;      // right, or nothing with GradcheckOptions::zero
  int64_t entries = 0;  // number of entries compared, over all inputs
  // The worst entry of gradients that are not zero; input is -1 if there is none. error is |analytic - numeric| over
  // the largest entry of the input's gradient.
  int input = -1;
  Dims index;
  double analytic = 0, numeric = 0, error = 0;
  int output = -1;   // the output of f with the largest share of the error; -1 unless wrong
  std::string note;  // an explanation: a kink, a step that left the domain, ...; or why nothing was measured

  std::string message() const;  // one line about the worst entry
};

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;
using TensorsFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Compares d <c, f(inputs)> / d inputs, c random, for every entry of every floating input: the result of grad()
// with the four-point central difference
//   f'(x) ~ (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h
// (error h^4 f^(5) / 30; Abramowitz & Stegun 25.3.6). h is `step` times the standard deviation of the entry's row (last
// dimension), so that rows far from 0 work. If the row is constant, h is relative to the standard deviation of the
// whole tensor; if that is constant, too, to the entry's size, at most 1.
//
// A gradient counts as zero if each entry, analytic and numeric, is at most 4 eps |f| / h, with |f| the sum of |c f|,
// or at most `absolute`. Differences cannot resolve less: the formula multiplies an error of f by 1.5 / h, and f is
// rounded a few times.
//
// f gets contiguous copies of the inputs (any shapes; floating inputs must be f64, others are passed on). It must be
// smooth within 2h: keep away from kinks and ties. Throws if an input or an output is f32 or bf16, if f gives other
// values for the same inputs or writes to an input, if step is not above 0, or if tolerance or absolute is negative.
GradcheckResult gradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o = {});
GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o = {});

// gradcheck() of the gradients of <c, f(inputs)> by the inputs, which grad() computes with create_graph; they are
// differentiated by the inputs and by c. In the result, inputs are f's inputs followed by a c for each output of f that
// takes a gradient; outputs are the gradients of the floating inputs. Throws like gradcheck() and grad().
GradcheckResult gradgradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& o = {.tolerance = 1e-6});
GradcheckResult gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& o = {.tolerance = 1e-6});

}  // namespace isonorm
