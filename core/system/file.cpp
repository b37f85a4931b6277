#include "core/system/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace isonorm {

namespace {

void check_range(int64_t offset, int64_t n, int64_t size) {
  check(offset >= 0 && n >= 0 && offset <= size && n <= size - offset, "cannot access ", n, " bytes at offset ", offset,
        ": the file has only ", size, " bytes");
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

namespace {

// An open file and the memory that it is mapped to.
class Mapping {
 public:
  explicit Mapping(const std::string& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::string_view bytes() const { return {begin_, size_}; }
  // Throws if `use` did not see all of the file's bytes.
  void check_whole(const std::string& path) const {
    struct stat info {};
    check_io(::fstat(fd_, &info) == 0 && static_cast<size_t>(info.st_size) >= size_, path,
             ": the file became shorter while it was read");
    check_io(!cut_, path, ": a part of the file cannot be read");
  }
  static void catch_bus_errors();

 private:
  static void on_bus_error(int, siginfo_t* info, void*);
  bool replace_by_zeros(char* from);

  static inline thread_local Mapping* innermost_ = nullptr;  // of this thread
  static inline struct sigaction before_ {};                 // the handler of SIGBUS before ours

  int fd_ = -1;
  char* begin_ = nullptr;  // null if the file is empty
  size_t size_ = 0;
  volatile bool cut_ = false;  // set by the signal handler
  Mapping* outer_;
};

// Replaces the page of `from` and all later pages by zeros. mmap() is only a system call, so a signal handler may use
// it.
bool Mapping::replace_by_zeros(char* from) {
  if (from < begin_ || from >= begin_ + size_) return false;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  char* const at = begin_ + static_cast<size_t>(from - begin_) / page * page;
  cut_ = true;
  return ::mmap(at, static_cast<size_t>(begin_ + size_ - at), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

void Mapping::on_bus_error(int, siginfo_t* info, void*) {
  const int error = errno;
  bool ours = false;
  for (Mapping* m = innermost_; m && !ours; m = m->outer_)
    ours = m->replace_by_zeros(static_cast<char*>(info->si_addr));
  if (!ours) ::sigaction(SIGBUS, &before_, nullptr);  // the signal is raised again, for the handler before ours
  errno = error;
}

void Mapping::catch_bus_errors() {
  [[maybe_unused]] static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, &before_) == 0;
  }();
}

Mapping::Mapping(const std::string& path) : outer_(innermost_) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // NONBLOCK: a pipe must not block open()
  check_io(fd_ >= 0, path, ": cannot open: ", std::strerror(errno));
  struct stat info {};
  const bool regular = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  void* at = nullptr;
  if (regular && info.st_size > 0) {
    size_ = static_cast<size_t>(info.st_size);
    at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
  }
  if (!regular || at == MAP_FAILED) {
    const int error = errno;
    ::close(fd_);
    check_io(regular, path, ": it is not a regular file");
    check_io(false, path, ": cannot map it: ", std::strerror(error));
  }
  begin_ = static_cast<char*>(at);
  innermost_ = this;
}

Mapping::~Mapping() {
  innermost_ = outer_;
  if (begin_) ::munmap(begin_, size_);
  ::close(fd_);
}

}  // namespace

void read_mapped(const std::string& path, const std::function<void(std::string_view bytes)>& use) {
  Mapping::catch_bus_errors();
  const Mapping file(path);
  try {
    use(file.bytes());
  } catch (...) {
    file.check_whole(path);
    throw;
  }
  file.check_whole(path);
}

}  // namespace isonorm
