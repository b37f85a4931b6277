// Chooses between the two forms of GELU at run time, and computes values and slopes of a register.
#pragma once

#include "core/cpu/lanes.h"
#include "core/formulas/math/gelu.h"

namespace isonorm {
namespace {

// Calls f<Form>().
template <class F> void visit_forms(bool tanh_form, const F& f) {
  tanh_form ? f.template operator()<math::TanhGelu>() : f.template operator()<math::ErfGelu>();
}

template <class T> struct ValueAndSlope { Vec<T> value, slope; };
// Both in one loop, because they share their exponential.
template <class Form, class T> [[gnu::always_inline]] inline ValueAndSlope<T> gelu_both(Vec<T> x) {
  T in[kLanes<T>], value[kLanes<T>], slope[kLanes<T>];
  std::memcpy(in, &x, sizeof(x));
#pragma omp simd
  for (int l = 0; l < kLanes<T>; ++l) {
    value[l] = Form::value(in[l]);
    slope[l] = Form::slope(in[l]);
  }
  return {load_lanes<T>(value), load_lanes<T>(slope)};
}

}  // namespace
}  // namespace isonorm
