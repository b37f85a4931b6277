#include "io/unfinished.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "io/replacement.h"

namespace isonorm::io {
namespace {

constexpr std::string_view kBegin = "isonorm: ";

// The first bytes of the file.
std::string content(int fd) {
  char bytes[200];
  return {bytes, static_cast<size_t>(std::max<ssize_t>(0, pread(fd, bytes, sizeof bytes, 0)))};
}

std::string this_process() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return text("process ", getpid(), " on ", host);
}

// True if the open file is the file that `path` names now.
bool named(int fd, const std::string& path) {
  struct stat open {
  }, there{};
  return fstat(fd, &open) == 0 && stat(path.c_str(), &there) == 0 && open.st_dev == there.st_dev &&
         open.st_ino == there.st_ino;
}

}  // namespace

std::string NameLock::file(const std::string& path) { return followed(path) + ".lock"; }

NameLock::NameLock(const std::string& path) {
  struct stat status {};
  if (path.empty() || (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))) return;
  const std::string name = file(path);
  bool free = true;
  for (int tries = 0; tries < 100; ++tries) {
    if (fd_ >= 0) close(fd_);
    fd_ = open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    check_io(fd_ >= 0, name, ": cannot be written: ", std::strerror(errno));
    free = flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (!free || named(fd_, name)) break;  // otherwise its owner removed the file before it was locked here
  }
  const std::string said = content(fd_);
  const bool ours = said.empty() || said.starts_with(kBegin);
  const std::string me = text(kBegin, this_process(), "\n");
  if (free && ours && ftruncate(fd_, 0) == 0 && pwrite(fd_, me.data(), me.size(), 0) == std::ssize(me)) {
    file_.emplace(name);
    return;
  }
  const int reason = errno;
  close(fd_);  // a constructor that throws runs no destructor
  check_io(ours, name, ": is in the way: it is no lock");
  const std::string holder = said.substr(std::min(said.size(), kBegin.size()), said.find('\n') - kBegin.size());
  check_io(free, path, ": ", holder.empty() ? "another process" : printable(holder), " is writing it");
  check_io(false, name, ": cannot be written: ", std::strerror(reason));
}

NameLock::~NameLock() {
  if (fd_ < 0) return;
  file_.reset();  // before others can lock it
  close(fd_);
}

}  // namespace isonorm::io
