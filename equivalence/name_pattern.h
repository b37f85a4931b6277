// Patterns of tensor names: a '*' stands for one or more characters other than '.'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isonorm::equivalence {

// Whether `name` is `pattern`; what the stars stand for goes to `stars`. A star stops at the next '.', so trying every
// length for each of them takes at most |name|^stars steps; three are enough for any name seen.
bool matches(std::string_view pattern, std::string_view name, std::vector<std::string>& stars);

// The pattern with its stars replaced, in order. Throws where it has more than there are.
std::string filled(const std::string& pattern, const std::vector<std::string>& stars);

}  // namespace isonorm::equivalence
