// The harness's checks of one sample. Each returns an empty string, or one line that describes the problem.
#pragma once

#include <string>

#include "tests/support/op_case.h"
#include "tests/support/placement.h"

namespace isonorm::test {

// Compares values, shapes and dtypes of the outputs with the reference. Recording must not change bits, must make the
// right graph, and inputs must stay unchanged.
std::string check_values(const OpCase& op, const Sample& s, DType dtype, Layout layout);

// Compares gradients in f64 with finite differences. Sets `measured` unless all are zero.
std::string check_gradient(const OpCase& op, const Sample& s, bool& measured);

// Compares second derivatives, also with respect to cotangents, with finite differences of gradients, in f64. Throws if
// the op refuses a second derivative. Sets `measured` unless all are zero.
std::string check_second_gradient(const OpCase& op, const Sample& s, bool& measured);
// Compares gradients with create_graph, computed by other code, with gradients without it. Returns "" if the op
// refuses.
std::string check_recorded_gradient(const Sample& s, DType dtype);
// True if no sample of the op refuses a second derivative.
bool has_second_gradient(const OpCase& op);

// Compares gradients of strided inputs under strided cotangents with those of contiguous ones, in f64. Neither may be
// written to.
std::string check_gradient_layout(const Sample& s, Layout layout);

// Entries of gradients that are 0 under random cotangents must also be 0 under infinite and NaN cotangents, recorded or
// not: an op must not multiply the branch that it did not choose.
std::string check_closed(const Sample& s);

// Compares gradients in f32 or bf16 with gradients in f64 at the same (rounded) inputs.
std::string check_gradient_dtype(const Sample& s, DType dtype);

// Outputs and gradients of repeated runs, and of two passes through a retained graph, must have equal bits. For large
// samples also with 1, 2 and 4 threads, unless BLAS computes them.
std::string check_bits(const Sample& s, DType dtype);

// The call must throw Error with one line "name: ..." that contains all the words.
std::string check_refusal(const OpCase& op, const BadCall& bad);

// With one of several inputs on the CPU and the others on the tests' device, the call must throw "name: cuda:0 and
// cpu", or the devices in the other order. Tries each input.
std::string check_mixture(const OpCase& op, const Sample& s);

// Describes an entry of y that differs from `expected` by more than the tolerance in its dtype. `inputs` is for
// Scale::terms.
std::string difference(const Tensor& y, const Array& expected, DType dtype, Tolerance t, double length,
                       const Arrays& inputs);

}  // namespace isonorm::test
