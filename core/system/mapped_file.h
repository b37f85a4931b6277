// Internal: a file as memory that the system reads as it is touched.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace isonorm {

// Maps a regular file for reading and calls use(bytes) with its whole content. `use` reads the bytes in the calling
// thread only.
//
// If the file becomes shorter meanwhile, read_mapped() throws (io), whatever `use` threw. The missing bytes read as zero until `use` ends (the
// system's answer would be SIGBUS), so its results count only when read_mapped() has returned.
// Throws (io) if the file is missing, is not a regular file, or cannot be mapped.
void read_mapped(const std::string& path, const std::function<void(std::string_view bytes)>& use);

}  // namespace isonorm
