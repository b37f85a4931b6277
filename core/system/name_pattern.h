// Patterns of tensor names: `*` stands for one or more characters other than '.', `**` for one or more of any. So
// "blocks.*.norm" is the norm of each block and of nothing deeper, "**.bias" every bias that lies in something.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isonorm::names {

// Whether `name` is `pattern`; what the stars stand for, each as short as can be from the left, is appended to `stars`.
// In the time of the two lengths' product, where there is a `**` times the length of the name.
bool matches(std::string_view pattern, std::string_view name, std::vector<std::string>& stars);

// Stars of a pattern, of either kind.
size_t count_stars(std::string_view pattern);

// The pattern with its stars replaced, in order, whichever kind they are. Throws where it has more than there are.
std::string filled(const std::string& pattern, const std::vector<std::string>& stars);

}  // namespace isonorm::names
