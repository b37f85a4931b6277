// Elementary functions that a compiler vectorises in an `omp simd` loop: no branches, no tables, no library calls.
//
// Every function is a template over float and double, for host and device. Both sides of a condition are computed and
// one is selected. 2^k is made by integer arithmetic on the exponent. Conversions between numbers and integers are only
// additions of a large constant, which every instruction set has in vector form. The algorithms are correct with and
// without fused multiply-add, so a compiler may contract a * b + c; it must not reassociate (no -ffast-math).
//
// Special values are as in C's library: NaN gives NaN, infinities give the limit, odd functions keep -0. Coefficients
// come from scripts/fit_math.py, error bounds from tests/core/math_test.cpp.
#pragma once

#include "core/formulas/math/exp.h"
#include "core/formulas/math/gelu.h"
#include "core/formulas/math/log.h"
#include "core/formulas/math/trig.h"
