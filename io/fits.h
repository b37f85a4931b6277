// Protection against files that claim more data than the machine has memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace isonorm::io {

// Throws (invalid), naming `what`, if `bytes` is more than this machine's memory. The file's size is no protection: a
// sparse file takes no room on the disk.
void check_fits(int64_t bytes, std::string_view what);

}  // namespace isonorm::io
