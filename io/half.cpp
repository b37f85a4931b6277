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

uint16_t narrowed(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size >= 0x7f800000u) return static_cast<uint16_t>(sign | 0x7c00u | (size >> 13 & 1023));
  if (size >= 113u << 23) return static_cast<uint16_t>(sign | ((size >> 13) - (112u << 10)));
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::abs(x) * 0x1p24f));
}

Dims without_last(Dims shape) { return --shape.rank, shape; }

Dims as_bytes(Dims shape) { return shape.push_back(2), shape; }

}  // namespace

Tensor from_half(const Tensor& bytes) {
  const Tensor x = empty(without_last(bytes.shape()), {DType::f32});
  const uint8_t* from = bytes.data<uint8_t>();
  float* to = x.mutable_data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = widened(static_cast<uint16_t>(from[2 * i] | from[2 * i + 1] << 8));
  return x;
}

Tensor to_half(const Tensor& x) {
  const Tensor numbers = packed(x), bytes = empty(as_bytes(x.shape()), {DType::u8});
  const float* from = numbers.data<float>();
  uint8_t* to = bytes.mutable_data<uint8_t>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const uint16_t h = narrowed(from[i]);
    to[2 * i] = static_cast<uint8_t>(h), to[2 * i + 1] = static_cast<uint8_t>(h >> 8);
  }
  return bytes;
}

void add_entry(LazyState& state, ForeignTypes& foreign, const std::string& name, const TensorEntry& e) {
  const bool half = e.foreign == kHalf;
  state.outline.add(name, half ? outline(without_last(e.shape), DType::f32) : outline(e.shape, e.dtype));
  if (half)
    state.half.insert(name);
  else if (!e.foreign.empty())
    foreign[name] = e.foreign;
}

Tensor held(const TensorEntry& e, const Tensor& stored) { return e.foreign == kHalf ? from_half(stored) : stored; }

FileContent content_of(const LazyState& state, const ForeignTypes& foreign) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, tensor] : state.outline) {
    const auto at = foreign.find(name);
    if (state.half.contains(name))
      entries.push_back({name, DType::u8, as_bytes(tensor.shape()), 0, 0, std::string(kHalf)});
    else
      entries.push_back({name, tensor.dtype(), tensor.shape(), 0, 0, at == foreign.end() ? "" : at->second});
  }
  return {entries, [half = state.half, read = state.read](const std::string& name) {
            return half.contains(name) ? to_half(read(name)) : read(name);
          }};
}

LazyState in_format(LazyState state, std::optional<NumberFormat> format) {
  if (!format) return state;
  LazyState all;
  for (const auto& [name, tensor] : state.outline) {
    const bool floating = is_floating(tensor.dtype());
    all.outline.add(name, floating ? outline(tensor.shape(), format->dtype) : tensor);
    if (floating && format->half) all.half.insert(name);
  }
  all.read = [format = *format, read = std::move(state.read)](const std::string& name) {
    const Tensor x = read(name);
    return is_floating(x.dtype()) ? rounded(x, format, name) : x;
  };
  return all;
}

}  // namespace isonorm::io
