// Words, lists and numbers in the text of PTX (section 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/program.h"

namespace isonorm::ptx {

// Replaces comments by spaces. Line numbers stay the same.
std::string without_comments(std::string_view text);
std::string_view trimmed(std::string_view text);
std::vector<std::string> words(std::string_view text);
// "a, {b, c}, [d]" has three parts.
std::vector<std::string> split_commas(std::string_view text);
// The position of the bracket that closes the one at `open`. Throws Fault.
size_t closing(std::string_view text, size_t open);

// The bits that a register has for an integer, 0f3F800000 or 0d3FF0000000000000 (4.5).
std::optional<uint64_t> number(std::string_view text);

// ".param .align 8 .b8 name[128]", ".extern .shared .align 16 .b8 name[]", ".param .f64 name".
struct Declaration {
  std::string name;
  size_t alignment = 1, bytes = 0;
  bool is_extern = false;
};
Declaration declaration(std::string_view text);

inline size_t aligned(size_t at, size_t alignment) { return (at + alignment - 1) / alignment * alignment; }

}  // namespace isonorm::ptx
