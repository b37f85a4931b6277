// Types, state spaces and register values of PTX. Numbers of sections, here and in the other files of this folder,
// refer to NVIDIA's "Parallel Thread Execution ISA", version 9.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace isonorm::ptx {

// Section 5.2; `none`: no type.
enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  bf16,
  bf16x2,
  f32,
  f64
};
// Section 5.1.
enum class Space : uint8_t { generic, param, global, shared, local };

Type type_named(std::string_view name);  // none: there is no such type
size_t size_of(Type type);               // in bytes; 1 for pred
bool is_signed(Type type);
Type unsigned_of(Type type);  // bits, signed integers: the unsigned integer of this size; else the type

// The C++ type that computes with values of a type.
template <class T> inline constexpr Type kType = Type::none;
template <> inline constexpr Type kType<bool> = Type::pred;
template <> inline constexpr Type kType<uint8_t> = Type::u8;
template <> inline constexpr Type kType<uint16_t> = Type::u16;
template <> inline constexpr Type kType<uint32_t> = Type::u32;
template <> inline constexpr Type kType<uint64_t> = Type::u64;
template <> inline constexpr Type kType<int8_t> = Type::s8;
template <> inline constexpr Type kType<int16_t> = Type::s16;
template <> inline constexpr Type kType<int32_t> = Type::s32;
template <> inline constexpr Type kType<int64_t> = Type::s64;
template <> inline constexpr Type kType<float> = Type::f32;
template <> inline constexpr Type kType<double> = Type::f64;

// A register is a word with the value in its low bytes. The bytes above are not read.
template <class T> T get(uint64_t word) {
  if constexpr (std::is_same_v<T, bool>) {
    return word & 1;
  } else {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
}
template <class T> uint64_t put(T value) {
  if constexpr (std::is_same_v<T, float>)
    if (value != value) return 0x7fffffff;  // the only NaN that an instruction of f32 returns (9.7.3)
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

}  // namespace isonorm::ptx
