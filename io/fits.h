// Files that ask for more memory than there is.
#pragma once

#include <cstdint>
#include <string_view>

namespace isonorm::io {

// Throws (invalid), naming `what`, where its bytes are more than this machine's memory: a sparse file of any size takes no
// room on a disk.
void check_fits(int64_t bytes, std::string_view what);

}  // namespace isonorm::io
