// Patterns of tensor names: a '*' stands for one or more characters other than '.'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isonorm::io {

// Whether `name` is `pattern`; what the stars stand for, each as short as can be from the left, is appended to `stars`.
bool matches(std::string_view pattern, std::string_view name, std::vector<std::string>& stars);

// The pattern with its stars replaced, in order. Throws where it has more than there are.
std::string filled(const std::string& pattern, const std::vector<std::string>& stars);

}  // namespace isonorm::io
