// Internal: a file mapped to memory, which the system reads on access.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace isonorm {

// Maps a regular file for reading and calls use(bytes) with its whole content. `use` must read the bytes in the calling
// thread only.
//
// If the file becomes shorter meanwhile, read_mapped() throws (io), whatever `use` threw. The missing bytes read as
// zero until `use` ends (otherwise the system would raise SIGBUS), so the results of `use` count only when
// read_mapped() has returned. Throws (io) if the file is missing, is not a regular file, or cannot be mapped.
void read_mapped(const std::string& path, const std::function<void(std::string_view bytes)>& use);

}  // namespace isonorm
