// Internal: a file as memory that the system reads as it is touched.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace isonorm {

// Maps a regular file for reading and calls use(bytes) with all of it. `use` reads the bytes in the calling thread only.
//
// If the file becomes shorter, the bytes that it no longer has read as zero (without that the system would end the process: SIGBUS), and
// read_mapped() throws (io) after `use`, whatever `use` threw. So results of `use` count only when read_mapped() has returned.
// Throws (io) if the file is missing, is not a regular file, or cannot be mapped.
void read_mapped(const std::string& path, const std::function<void(std::string_view bytes)>& use);

}  // namespace isonorm
