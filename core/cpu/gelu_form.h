// The two forms of GELU as types, and their values and slopes of a register.
#pragma once

#include "core/cpu/lanes.h"
#include "core/formulas/math/gelu.h"

namespace isonorm {
namespace {

struct Erf {
  template <class T> ISO_HD static T value(T x) { return math::gelu(x); }
  template <class T> ISO_HD static T slope(T x) { return math::gelu_grad(x); }
};
struct Tanh {
  template <class T> ISO_HD static T value(T x) { return math::gelu_tanh(x); }
  template <class T> ISO_HD static T slope(T x) { return math::gelu_tanh_grad(x); }
};

// f<Form>().
template <class F> void visit_forms(bool tanh_form, const F& f) {
  tanh_form ? f.template operator()<Tanh>() : f.template operator()<Erf>();
}

template <class T> struct ValueAndSlope { Vec<T> value, slope; };
// Both in one loop: they share their exponential.
template <class Form, class T> ValueAndSlope<T> gelu_both(Vec<T> x) {
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
