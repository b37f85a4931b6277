#include "io/half.h"

#include <bit>
#include <cmath>

#include "io/packed.h"

namespace isonorm::io {
namespace {

float widened(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

uint16_t narrowed(double x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return sign | 0x7c00 | static_cast<uint16_t>(std::bit_cast<uint64_t>(x) >> 42 & 1023) | 0x200;
  if (x == 0) return sign;
  int exponent = 0;  // as frexp has it: the smallest normal number's is -13
  std::frexp(x, &exponent);
  exponent = std::isfinite(x) ? std::max(exponent, -13) : 17;
  if (exponent > 16) return sign | 0x7c00;
  // In units of the last place; a carry into the next power of two, or to infinity, is right as it is.
  const auto units = static_cast<uint16_t>(std::nearbyint(std::ldexp(std::abs(x), 11 - exponent)));
  return static_cast<uint16_t>(sign + units + ((exponent + 13) << 10));
}

Dims without_last(Dims shape) { return --shape.rank, shape; }

}  // namespace

Tensor from_half(const Tensor& bytes) {
  const Tensor x = empty(without_last(bytes.shape()), {DType::f32});
  const uint8_t* from = bytes.data<uint8_t>();
  float* to = x.mutable_data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = widened(static_cast<uint16_t>(from[2 * i] | from[2 * i + 1] << 8));
  return x;
}

Tensor to_half(const Tensor& x) {
  const Tensor in = packed(x);
  Dims shape = x.shape();
  shape.push_back(2);
  const Tensor bytes = empty(shape, {DType::u8});
  uint8_t* to = bytes.mutable_data<uint8_t>();
  visit_floating(in.dtype(), "to_half", [&]<class T>() {
    const T* from = in.data<T>();
    for (int64_t i = 0; i < in.numel(); ++i) {
      const uint16_t h = narrowed(static_cast<double>(from[i]));
      to[2 * i] = static_cast<uint8_t>(h), to[2 * i + 1] = static_cast<uint8_t>(h >> 8);
    }
  });
  return bytes;
}

}  // namespace isonorm::io
