// Lab 8: a kernel. 6 hours.
//
// Goal: beat code that moves every intermediate result through memory.
// Read: docs/workshop.md, the whole page; core/system/parallel.h.
// Do:   8_kernel.cpp. First make it right; then make one pass over a row while the cache holds it; then use parallel
//       sums; then threads. Measure after each step; write down what you expected.
// Hand in: 8_kernel.cpp.
//
// The naive code (support/naive_kernel.cpp) makes three passes over memory. How many bytes does each move, and how many
// must yours move? What time do you expect, relative to the naive code?
#pragma once

#include <cstdint>

namespace course {

// y = x / sqrt(mean x^2 + eps) for each of `rows` rows of n entries, f32, contiguous; y may be x. No running sum adds
// more than n / 8 terms one after the other. The bits do not depend on the number of threads.
void rms_norm_rows(const float* x, float* y, int64_t rows, int64_t n, float eps);

}  // namespace course
