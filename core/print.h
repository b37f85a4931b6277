// Tensors, shapes, dtypes and devices as text for people.
#pragma once

#include <iosfwd>
#include <string>

#include "core/tensor.h"

namespace isonorm {

// How tensors are printed; numpy.set_printoptions() has the same options.
struct PrintOptions {
  int digits = 8;            // the most digits after the point, up to 17
  int64_t threshold = 1000;  // tensors with more elements are abbreviated
  int64_t edge_items = 3;    // entries shown at either end of an abbreviated dimension
  int line_width = 75;       // characters per line
};

// Sets the options for all threads: set_print_options({.digits = 15}); set_print_options({}) restores the defaults.
// Throws if digits is not in [0, 17], threshold or edge_items is below 1, or line_width is below 10.
void set_print_options(const PrintOptions& options);
PrintOptions print_options();

// The values as NumPy's array2string() writes them with a comma as separator, then dtype, shape and device. A number
// has the digits that tell it from its neighbours, up to PrintOptions::digits after the point. Numbers have an exponent
// if the largest is at least 1e8 (1e6 in f32 and bf16) or over 1000 times the smallest, or if the smallest is below
// 1e-4. Zeros do not count.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& os, const Tensor& x);

// "[2, 3]", "f32", "cuda:0".
std::ostream& operator<<(std::ostream& os, const Dims& shape);
std::ostream& operator<<(std::ostream& os, DType dtype);
std::ostream& operator<<(std::ostream& os, Device device);

}  // namespace isonorm
