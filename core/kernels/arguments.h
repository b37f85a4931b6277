// Visits the tensors in the arguments of a kernel. A profile counts them, a check tests that they are on one device,
// and a test copies them from a device to the host and back.
#pragma once

#include <span>
#include <tuple>
#include <type_traits>

#include "core/tensor.h"

namespace isonorm {

// A struct of tensors lists them in one place: static auto tensors(auto& s) { return std::tie(s.a, s.b); }
template <class S>
concept HoldsTensors = requires(S& s) {
  std::remove_const_t<S>::tensors(s);
};

// Calls f for every tensor in an argument, including undefined ones. Numbers and sizes have none.
template <class F> void each_tensor(F&& f, const Tensor& t) { f(t); }
template <class F, class T> void each_tensor(F&& f, const T& argument) {
  if constexpr (HoldsTensors<const T>)
    std::apply([&](const auto&... part) { (each_tensor(f, part), ...); }, T::tensors(argument));
}
template <class F, class T> void each_tensor(F&& f, std::span<const T> list) {
  for (const T& item : list) each_tensor(f, item);
}

// Bytes of the elements that the tensor refers to. A broadcast element counts once. 0 if undefined.
int64_t tensor_bytes(const Tensor& x);

inline int64_t bytes_of_all(const auto&... arguments) {
  int64_t bytes = 0;
  (each_tensor([&](const Tensor& t) { bytes += tensor_bytes(t); }, arguments), ...);
  return bytes;
}

}  // namespace isonorm
