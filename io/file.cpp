#include "io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "core/error.h"

namespace isonorm::io {
namespace {

namespace fs = std::filesystem;

// Temporary files that this process is writing: told apart from those that an earlier process of the same number left.
std::mutex mutex;
std::set<std::string>& in_use() {
  static std::set<std::string> names;
  return names;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string target_of(const std::string& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
}

// Removes `<path>.tmp.<pid>` of processes that are gone. Best effort: what cannot be removed does no harm.
void remove_stale(const std::string& path) {
  const std::string prefix = fs::path(path).filename().string() + ".tmp.";
  std::error_code stop_at;
  for (fs::directory_iterator entry(folder_of(path), stop_at), last; !stop_at && entry != last;
       entry.increment(stop_at)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t pid = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, pid);
    if (error != std::errc() || stop != end || pid <= 0) continue;
    const bool alive =
        pid == getpid() ? in_use().contains(path + ".tmp." + std::to_string(pid)) : kill(pid, 0) == 0 || errno != ESRCH;
    if (!alive) system_calls().unlink(entry->path().c_str());
  }
}

}  // namespace

SystemCalls& system_calls() {
  static SystemCalls calls = {[](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
                              ::write,
                              ::fsync,
                              ::close,
                              ::rename,
                              ::unlink};
  return calls;
}

Replacement::Replacement(const std::string& path) : path_(target_of(path)) {
  const Scope scope(path_);
  temporary_ = path_ + ".tmp." + std::to_string(getpid());
  std::lock_guard lock(mutex);
  check_io(!in_use().contains(temporary_), "this process is writing it already");
  remove_stale(path_);
  fd_ = system_calls().open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  check_io(fd_ >= 0, "cannot create a file beside it: ", std::strerror(errno));
  in_use().insert(temporary_);
}

Replacement::~Replacement() {
  if (fd_ >= 0) system_calls().close(fd_);
  std::lock_guard lock(mutex);
  if (in_use().erase(temporary_) > 0) system_calls().unlink(temporary_.c_str());
}

void Replacement::write(const void* bytes, int64_t n) {
  const Scope scope(path_);
  const char* p = static_cast<const char*>(bytes);
  while (n > 0) {
    // Linux writes at most about 2^31 bytes at once.
    const ssize_t done = system_calls().write(fd_, p, static_cast<size_t>(std::min<int64_t>(n, int64_t{1} << 30)));
    if (done < 0 && errno == EINTR) continue;
    check_io(done >= 0, "cannot write: ", std::strerror(errno));
    check_io(done > 0, "cannot write: the system took no bytes");
    p += done;
    n -= done;
  }
}

void Replacement::commit() {
  const Scope scope(path_);
  const SystemCalls& system = system_calls();
  const auto succeed = [](int status, const char* what) { check_io(status == 0, what, ": ", std::strerror(errno)); };
  succeed(system.fsync(fd_), "cannot write it to disk");
  const int file = fd_;
  fd_ = -1;
  succeed(system.close(file), "cannot close it");
  succeed(system.rename(temporary_.c_str(), path_.c_str()), "cannot give the new file its name");
  {
    std::lock_guard lock(mutex);
    in_use().erase(temporary_);
  }
  const int folder = system.open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  check_io(folder >= 0, "cannot open its folder: ", std::strerror(errno));
  // Some network file systems cannot fsync a folder and say EINVAL.
  const int reason = system.fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
  system.close(folder);
  check_io(reason == 0, "cannot write its folder to disk: ", std::strerror(reason));
}

}  // namespace isonorm::io
