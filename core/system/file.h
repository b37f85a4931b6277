// Reads files, as a whole or in pieces whose bounds are checked against the file's size. Failures are Error with
// ErrorKind::io and name the file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isonorm {

// A readable range of bytes: a file or a piece of memory. Readers of file formats take this, so that one parser serves
// both.
struct Bytes {
  std::string name;  // readers put it before their messages: Scope scope(bytes.name)
  int64_t size = 0;
  // Copies bytes [offset, offset + n) to `to`. Throws if they are not all in [0, size) or the file has become shorter;
  // the message does not repeat the name.
  std::function<void(int64_t offset, void* to, int64_t n)> read;
};

// An open regular file. Throws if it is missing, not a regular file or unreadable.
Bytes open_bytes(const std::string& path);
// A view of memory, which must live at least as long as the result.
Bytes memory_bytes(std::span<const uint8_t> memory, const std::string& name);
inline Bytes memory_bytes(std::string_view text, const std::string& name) {
  return memory_bytes({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, name);
}

// All bytes. Throws if there are more than `limit`, before anything is allocated.
std::vector<uint8_t> read_all(const Bytes& bytes, int64_t limit);

// All bytes of a regular file, as text. Throws like open_bytes() and read_all().
std::string read_text(const std::string& path, int64_t limit);

// True if `path` exists: a file, folder or device.
bool file_exists(const std::string& path);

// Maps a regular file for reading and calls use(bytes) with its whole content. `use` must read the bytes in the calling
// thread only.
//
// If the file becomes shorter meanwhile, read_mapped() throws (io), whatever `use` threw. The missing bytes read as
// zero until `use` ends (otherwise the system would raise SIGBUS), so the results of `use` count only when
// read_mapped() has returned. Throws (io) if the file is missing, is not a regular file, or cannot be mapped.
void read_mapped(const std::string& path, const std::function<void(std::string_view bytes)>& use);

}  // namespace isonorm
