// Compares two tensors bit by bit (also NaNs and signed zeros), with shape and dtype.
#pragma once

#include <cstring>

#include "core/tensor.h"

inline bool same_bytes(const isonorm::Tensor& a, const isonorm::Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  return isonorm::visit_all(a.dtype(), [&]<class T>() {
    const std::vector<T> x = a.to_vector<T>(), y = b.to_vector<T>();
    return x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
  });
}
