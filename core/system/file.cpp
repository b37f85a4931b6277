#include "core/system/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace isonorm {
namespace {

void check_range(int64_t offset, int64_t n, int64_t size) {
  check(offset >= 0 && n >= 0 && offset <= size && n <= size - offset, n, " bytes at ", offset, " leave the file of ",
        size, " bytes");
}

// One pread takes at most about 2^31 bytes on Linux and may be interrupted.
void read_exactly(int fd, int64_t offset, void* to, int64_t n) {
  auto* p = static_cast<uint8_t*>(to);
  while (n > 0) {
    const ssize_t got = ::pread(fd, p, static_cast<size_t>(std::min<int64_t>(n, int64_t{1} << 30)), offset);
    if (got < 0 && errno == EINTR) continue;
    check_io(got >= 0, "cannot read: ", std::strerror(errno));
    check_io(got > 0, "the file became shorter while it was read");
    p += got;
    offset += got;
    n -= got;
  }
}

}  // namespace

Bytes open_bytes(const std::string& path) {
  const int raw = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // NONBLOCK: a pipe must not hang the open
  check_io(raw >= 0, path, ": cannot open: ", std::strerror(errno));
  const std::shared_ptr<int> fd(new int(raw), [](int* p) {
    ::close(*p);
    delete p;
  });
  struct stat info;
  const int status = ::fstat(raw, &info);
  check_io(status == 0, path, ": cannot ask for its size: ", std::strerror(errno));
  check_io(S_ISREG(info.st_mode), path, ": it is not a regular file");
  return {path, info.st_size, [fd, size = int64_t{info.st_size}](int64_t offset, void* to, int64_t n) {
            check_range(offset, n, size);
            read_exactly(*fd, offset, to, n);
          }};
}

Bytes memory_bytes(std::span<const uint8_t> memory, const std::string& name) {
  return {name, static_cast<int64_t>(memory.size()), [memory](int64_t offset, void* to, int64_t n) {
            check_range(offset, n, static_cast<int64_t>(memory.size()));
            if (n > 0) std::memcpy(to, memory.data() + offset, static_cast<size_t>(n));
          }};
}

std::vector<uint8_t> read_all(const Bytes& bytes, int64_t limit) {
  const Scope scope(bytes.name);
  check(bytes.size <= limit, "the file has ", bytes.size, " bytes, over the limit of ", limit);
  std::vector<uint8_t> all(static_cast<size_t>(bytes.size));
  bytes.read(0, all.data(), bytes.size);
  return all;
}

std::string read_text(const std::string& path, int64_t limit) {
  const Bytes bytes = open_bytes(path);
  const Scope scope(path);
  check(bytes.size <= limit, "the file has ", bytes.size, " bytes, over the limit of ", limit);
  std::string all(static_cast<size_t>(bytes.size), '\0');
  bytes.read(0, all.data(), bytes.size);
  return all;
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace isonorm
