#include "core/system/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace isonorm {

MappedFile::MappedFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // NONBLOCK: a pipe must not hang the open
  check_io(fd >= 0, path, ": cannot open: ", std::strerror(errno));
  struct stat info {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = static_cast<size_t>(info.st_size);
  void* at = nullptr;
  if (regular && size > 0) at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);  // what is mapped stays
  check_io(regular, path, ": it is not a regular file");
  check_io(at != MAP_FAILED, path, ": cannot map it: ", std::strerror(error));
  bytes_ = {static_cast<const char*>(at), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace isonorm
