#include "io/half.h"

#include <bit>

namespace isonorm::io {
namespace {

float widened(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
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

}  // namespace isonorm::io
