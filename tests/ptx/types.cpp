#include "tests/ptx/types.h"

#include <map>

namespace isonorm::ptx {

Type type_named(std::string_view name) {
  using enum Type;
  static const std::map<std::string_view, Type> types{
      {"pred", pred}, {"b8", b8},     {"b16", b16},       {"b32", b32}, {"b64", b64}, {"u8", u8},
      {"u16", u16},   {"u32", u32},   {"u64", u64},       {"s8", s8},   {"s16", s16}, {"s32", s32},
      {"s64", s64},   {"bf16", bf16}, {"bf16x2", bf16x2}, {"f32", f32}, {"f64", f64}};
  const auto at = types.find(name);
  return at == types.end() ? none : at->second;
}

size_t size_of(Type type) {
  constexpr size_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 4, 8};
  return sizes[static_cast<size_t>(type)];
}

bool is_signed(Type type) { return type >= Type::s8 && type <= Type::s64; }

Type unsigned_of(Type type) {
  if (type < Type::b8 || type > Type::s64) return type;
  switch (size_of(type)) {
    case 1:
      return Type::u8;
    case 2:
      return Type::u16;
    case 4:
      return Type::u32;
    default:
      return Type::u64;
  }
}

}  // namespace isonorm::ptx
