// The device of a test program's tensors: the CPU, or cuda:0 (tests/support/device.h) if the program links
// tests/support/on_device.cpp.
#pragma once

#include "core/tensor.h"

namespace isonorm::test {

Device test_device();
void set_test_device(Device device);

// The values on this device, without graph.
Tensor on_test_device(const Tensor& x);
template <class T> Tensor on_test_device(const std::vector<T>& values, const Dims& shape) {
  return on_test_device(from_vector(values, shape));
}

}  // namespace isonorm::test
