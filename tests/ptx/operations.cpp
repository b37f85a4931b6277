#include "tests/ptx/operations.h"

#include <algorithm>

namespace isonorm::ptx {
namespace {

Space space_named(std::string_view word) {
  if (word == "global") return Space::global;
  if (word == "shared" || word == "shared::cta") return Space::shared;
  if (word == "param" || word == "param::entry") return Space::param;
  return Space::generic;
}

}  // namespace

Modifiers::Modifiers(std::string_view name, Instruction& in) {
  for (size_t dot = name.find('.'); dot != name.npos;) {
    const size_t end = name.find('.', dot + 1);
    const std::string_view word = name.substr(dot + 1, end - dot - 1);
    dot = end;
    if (const Type t = type_named(word); t != Type::none && in.source == Type::none)
      (in.type == Type::none ? in.type : in.source) = t;
    else if (const Space s = space_named(word); s != Space::generic && in.space == Space::generic)
      in.space = s;
    else
      words_.emplace_back(word);
  }
}

bool Modifiers::take(std::string_view modifier) {
  const auto at = std::ranges::find(words_, modifier);
  if (at == words_.end()) return false;
  words_.erase(at);
  return true;
}

Execute select(std::string_view name, Instruction& in) {
  static const Operations all = [] {
    Operations found;
    for (const Operations* some :
         {&bit_operations(), &choice_operations(), &move_operations(), &memory_operations(), &copy_operations(),
          &exchange_operations(), &matrix_operations(), &integer_operations()})
      found.insert(some->begin(), some->end());
    return found;
  }();
  const std::string_view operation = name.substr(0, name.find('.'));
  Modifiers modifiers(name, in);
  const bool is_real = in.type == Type::f32 || in.type == Type::f64;
  const auto real = real_operations().find(operation), other = all.find(operation);
  Execute execute = nullptr;
  if (is_real && real != real_operations().end())
    execute = real->second(in, modifiers);
  else if (other != all.end())
    execute = other->second(in, modifiers);
  return modifiers.empty() ? execute : nullptr;
}

}  // namespace isonorm::ptx
