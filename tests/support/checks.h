// What the harness checks of one sample. Each function returns an empty string, or one line that says what is wrong.
#pragma once

#include <string>

#include "tests/support/op_case.h"
#include "tests/support/placement.h"

namespace isonorm::test {

// Values, shapes and dtypes of the outputs against the reference; recording or not gives the same bits and the right
// graph; inputs unchanged.
std::string check_values(const OpCase& op, const Sample& s, DType dtype, Layout layout);

// Gradients in f64 against finite differences. Sets `measured` unless all are zero.
std::string check_gradient(const OpCase& op, const Sample& s, bool& measured);

// Gradients of gradients, and of cotangents, in f64 against finite differences of gradients. Throws if the op refuses
// them: every gradient has one. Sets `measured` unless all are zero.
std::string check_second_gradient(const OpCase& op, const Sample& s, bool& measured);
// Gradients with create_graph, which rules compute another way, against those without; nothing if the op is refused.
std::string check_recorded_gradient(const Sample& s, DType dtype);
// True if no sample of the op is refused so.
bool has_second_gradient(const OpCase& op);

// Gradients of strided inputs under strided cotangents against those of contiguous ones, in f64; nothing is written to
// either.
std::string check_gradient_layout(const Sample& s, Layout layout);

// Entries of gradients that are 0 under random cotangents are also 0 under infinite and NaN cotangents, recorded or not: an
// op does not multiply the branch that it did not choose.
std::string check_closed(const Sample& s);

// Gradients in f32 or bf16 against those in f64 at the same (rounded) inputs.
std::string check_gradient_dtype(const Sample& s, DType dtype);

// Outputs and gradients of repeated runs, and of two passes through a retained graph, are bit-equal; of a large sample
// (but where BLAS decides) also for 1, 2 and 4 threads.
std::string check_bits(const Sample& s, DType dtype);

// The call throws Error with one line: "name: ..." with all the words.
std::string check_refusal(const OpCase& op, const BadCall& bad);

// With any one of several inputs on the CPU, the others on the device of the tests, the call throws
// "name: cuda:0 and cpu" or the other way round.
std::string check_mixture(const OpCase& op, const Sample& s);

// Where y differs from `expected` by more than the tolerance in its dtype; `inputs` for Scale::terms.
std::string difference(const Tensor& y, const Array& expected, DType dtype, Tolerance t, double length,
                       const Arrays& inputs);

}  // namespace isonorm::test
