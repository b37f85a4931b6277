// Finds the tensors in a value of another type. Loaders use it for the items of a set and for batches.
#pragma once

#include <array>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace isonorm::data {

// Internal: converts to any type, to count the members of a struct.
struct AnyMember {
  template <class T> operator T() const;
};
template <class T, class... Members> consteval int members_of() {
  if constexpr (sizeof...(Members) < 6 && requires { T{Members{}..., AnyMember{}}; })
    return members_of<T, Members..., AnyMember>();
  else
    return sizeof...(Members);
}

// Calls f(tensor) for each tensor in `value`, in order. `value` is a Tensor, or a vector, array, pair, tuple or struct
// of up to 6 public members that hold such values themselves. Other types do not compile.
template <class Value, class F> void each_tensor(Value& value, const F& f) {
  using T = std::remove_const_t<Value>;
  if constexpr (std::same_as<T, Tensor>) {
    f(value);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](auto&... part) { (each_tensor(part, f), ...); }, value);
  } else if constexpr (requires { value.begin() != value.end(); }) {
    for (auto& part : value) each_tensor(part, f);
  } else {
    constexpr int members = [] {
      if constexpr (std::is_aggregate_v<T>) return members_of<T>();
      return 0;
    }();
    static_assert(members > 0,
                  "data: expected a Tensor, a std::vector, array, pair or tuple of tensors, or a struct of up to 6 of "
                  "these; a number becomes a tensor by isonorm::tensor()");
    const auto all = [&](auto&... part) { (each_tensor(part, f), ...); };
    if constexpr (members == 1) {
      auto& [a] = value;
      all(a);
    } else if constexpr (members == 2) {
      auto& [a, b] = value;
      all(a, b);
    } else if constexpr (members == 3) {
      auto& [a, b, c] = value;
      all(a, b, c);
    } else if constexpr (members == 4) {
      auto& [a, b, c, d] = value;
      all(a, b, c, d);
    } else if constexpr (members == 5) {
      auto& [a, b, c, d, e] = value;
      all(a, b, c, d, e);
    } else if constexpr (members == 6) {
      auto& [a, b, c, d, e, g] = value;
      all(a, b, c, d, e, g);
    }
  }
}

}  // namespace isonorm::data
