// Lab 8: a kernel. 6 hours.
//
// Goal: beat code that moves every intermediate result through memory.
// Read: docs/workshop.md, the whole page; core/system/parallel.h.
// Do:   8_kernel.cpp. First make it right, then one pass over a row while the cache holds it, then sums that run side by side,
//       then threads. Measure after each step; write down what you expected.
// Hand in: 8_kernel.cpp.
//
// The naive code (support/naive_kernel.cpp) goes three times over memory. How many bytes does each of its passes move, and how many
// must yours move? What time do you expect, then, relative to the naive code's?
#pragma once

#include <cstdint>

namespace course {

// y = x / sqrt(mean x^2 + eps) for each of `rows` rows of n entries, f32, contiguous; y may be x. No running sum adds more than
// n / 8 terms one after the other; the bits do not depend on the number of threads.
void rms_norm_rows(const float* x, float* y, int64_t rows, int64_t n, float eps);

}  // namespace course
