// The tensors in the arguments of a kernel: what a profile counts, what is checked to lie on one device, and what a
// test carries from a device to the host and back.
#pragma once

#include <span>
#include <tuple>
#include <type_traits>

#include "core/tensor.h"

namespace isonorm {

// A struct of tensors lists them once: static auto tensors(auto& s) { return std::tie(s.a, s.b); }
template <class S>
concept HoldsTensors = requires(S& s) {
  std::remove_const_t<S>::tensors(s);
};

// Calls f for every tensor that an argument has, undefined ones too: none for numbers and sizes.
template <class F> void each_tensor(F&& f, const Tensor& t) { f(t); }
template <class F, class T> void each_tensor(F&& f, const T& argument) {
  if constexpr (HoldsTensors<const T>)
    std::apply([&](const auto&... part) { (each_tensor(f, part), ...); }, T::tensors(argument));
}
template <class F, class T> void each_tensor(F&& f, std::span<const T> list) {
  for (const T& item : list) each_tensor(f, item);
}

// Of the elements that the tensor refers to: one that is broadcast counts once. 0 where undefined.
int64_t tensor_bytes(const Tensor& x);

inline int64_t bytes_of_all(const auto&... arguments) {
  int64_t bytes = 0;
  (each_tensor([&](const Tensor& t) { bytes += tensor_bytes(t); }, arguments), ...);
  return bytes;
}

}  // namespace isonorm
