// Lab 1: tensors. 4 hours.
//
// Goal: compute with whole tensors: broadcasting, views, reductions; know which function copies.
// Read: examples/01_tensors.cpp; docs/normalization.md up to "The norms" (P subtracts the mean of a row: without_mean()
//       below).
// Do:   1_tensors.cpp. No loop over elements: each function is one to four lines.
// Hand in: 1_tensors.cpp.
#pragma once

#include "support/library.h"

namespace course {

using isonorm::Tensor;

// P x: every row of x [..., d] minus its mean.
Tensor without_mean(const Tensor& x);

// The diagonal of x [n, n] as a view: writing into it writes into x.
Tensor diagonal(const Tensor& x);

// |a_i - b_j|^2 for the rows of a [n, d] and b [m, d]: [n, m], by one matrix product, |a|^2 - 2 a b + |b|^2.
Tensor squared_distances(const Tensor& a, const Tensor& b);

// exp(x) / sum of exp(x), for each row of x [..., n]; also if exp(x) itself would be infinite.
Tensor softmax_by_hand(const Tensor& x);

// [n, classes], f64: entry (i, ids[i]) is 1, all others are 0. ids [n] are i64.
Tensor one_hot_by_hand(const Tensor& ids, int64_t classes);

}  // namespace course
