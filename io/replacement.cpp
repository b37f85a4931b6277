#include "io/replacement.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/terminal.h"

namespace isonorm::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 16;  // random digits in a temporary file's name

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string prefix_of(const std::string& path) { return path + ".tmp."; }

std::string temporary_name(const std::string& path) {
  uint64_t number = 0;
  const bool random = getrandom(&number, sizeof number, 0) == sizeof number;
  check_io(random, "the system has no random numbers: ", std::strerror(errno));
  return prefix_of(path) + printed("%0*x", kDigits, number);
}

// Takes a writer's lock on its file; closing the descriptor frees it. On a file system without locks nothing is ever
// removed, so no lock is needed.
bool lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

bool is_temporary(const std::string& prefix, std::string_view name) {
  return name.starts_with(prefix) && name.size() == prefix.size() + kDigits &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == name.npos;
}

// Removes temporary files that dead processes left for `path`. Best effort: a file that cannot be removed does no harm.
void remove_stale(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(folder_of(path).c_str()), &closedir);
  if (!folder) return;
  const std::string prefix = prefix_of(fs::path(path).filename().string());
  while (const dirent* entry = readdir(folder.get())) {
    if (!is_temporary(prefix, entry->d_name)) continue;
    const int fd = openat(dirfd(folder.get()), entry->d_name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (lock(fd)) unlinkat(dirfd(folder.get()), entry->d_name, 0);
    close(fd);
  }
}

// Creates `name` and locks it. Returns -1 if another process took the file for a dead process's and removed it before
// the lock.
int create(const std::string& name) {
  const int fd = system_calls().open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  check_io(fd >= 0, "cannot create a file beside it: ", std::strerror(errno));
  struct stat status {};
  const bool locked = lock(fd) || errno != EWOULDBLOCK;
  if (locked && fstat(fd, &status) == 0 && status.st_nlink > 0) return fd;
  system_calls().close(fd);
  return -1;
}

// Throws if this process may not write the file at `path` (perhaps a link), whose status is `file`, or may not replace
// it. Two kinds of files may be writable but not replaceable: a file in a sticky folder, if neither file nor folder is
// the user's own, and a file that is a mount point, as in a container.
void check_replaceable(const std::string& path, const struct stat& file) {
  const bool writable = faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  check_io(writable, "cannot be written: ", std::strerror(errno));
  struct stat folder {};
  const uid_t user = geteuid();
  const bool owners = stat(folder_of(followed(path)).c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0;
  check_io(!owners || user == 0 || user == file.st_uid || user == folder.st_uid,
           "cannot be replaced: it is another user's, in a folder where only owners may");
  struct statx here = {}, around = {};
  const auto mount = [](const std::string& of, struct statx& s) {
    return statx(AT_FDCWD, of.c_str(), 0, STATX_MNT_ID, &s) == 0 && (s.stx_mask & STATX_MNT_ID) != 0;
  };
  if (!mount(path, here) || !mount(folder_of(followed(path)), around)) return;  // an older kernel
  check_io(here.stx_mnt_id == around.stx_mnt_id, "cannot be replaced: it is mounted there by itself");
}

}  // namespace

SystemCalls& system_calls() {
  static SystemCalls calls = {[](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
                              ::write, ::fsync, ::close, ::rename};
  return calls;
}

std::function<void(const std::string&, const struct stat&)>& replacement_check() {
  static std::function<void(const std::string&, const struct stat&)> check;
  return check;
}

bool begins_with(const std::string& path, std::string_view begin, int64_t offset) {
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return true;
  std::string there(begin.size(), '\0');
  const ssize_t read = pread(fd, there.data(), there.size(), offset);
  struct stat file {};
  const bool ends_before = fstat(fd, &file) == 0 && file.st_size > 0 && file.st_size <= offset;
  close(fd);
  return read < 0 || (!ends_before && begin.starts_with(there.substr(0, static_cast<size_t>(read))));
}

bool is_temporary_of(const std::string& path, const std::string& other) {
  std::error_code none;
  const fs::path at = followed(path), file = followed(other);
  return is_temporary(prefix_of(at.filename().string()), file.filename().string()) &&
         fs::equivalent(folder_of(at.string()), folder_of(file.string()), none);
}

// An open file, such as /dev/stdout (/proc/self/fd/1), is written in place, not replaced.
bool is_open_file(const std::string& path) { return path.starts_with("/proc/") || path.starts_with("/dev/fd/"); }

int descriptor_of(const std::string& path) {
  const std::string at = followed(path);
  int descriptor = -1;
  for (const std::string_view folder : {"/proc/self/fd/", "/dev/fd/"})
    if (at.starts_with(folder) && read_number(at.substr(folder.size()), descriptor)) return descriptor;
  return -1;
}

int open_again(const std::string& path, int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  check_io(flags < 0 || (flags & O_ACCMODE) != O_RDONLY, path, ": cannot be written: it is open for reading");
  const int again = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  check_io(again >= 0, path, ": cannot be written: ", std::strerror(errno));
  return again;
}

void check_written(bool good, const std::string& path, const std::string& what) {
  const int error = errno;
  if (!good && error == EPIPE && descriptor_of(path) == STDOUT_FILENO) throw NobodyReads();
  check_io(good, what, ": ", std::strerror(error));
}

std::string followed(const std::string& path) {
  fs::path at = path;
  std::error_code none;
  for (int links = 0; fs::is_symlink(at, none) && !is_open_file(at.string()); ++links) {
    check_io(links < 40, path, ": its symbolic links lead in a circle");
    at = at.parent_path() / fs::read_symlink(at, none);
  }
  return at.string();
}

Replacement::Replacement(const std::string& path) : given_(path), path_(followed(path)) {
  if (const int descriptor = descriptor_of(path); descriptor >= 0) {
    fd_ = open_again(path, descriptor);
    return;
  }
  const Scope scope(path_);
  struct stat status {};
  const bool there = stat(path.c_str(), &status) == 0;
  // A link to a missing file counts as no file. A link that the system refuses to follow is an error.
  check_io(there || errno == ENOENT, "cannot be written: ", std::strerror(errno));
  check_io(!there || !S_ISDIR(status.st_mode), "is a folder");
  if (there && (!S_ISREG(status.st_mode) || is_open_file(path_))) {
    fd_ = system_calls().open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    check_io(fd_ >= 0, "cannot be written: ", std::strerror(errno));
    return;
  }
  if (there) check_replaceable(path, status);
  remove_stale(path_);
  while (fd_ < 0) fd_ = create(temporary_.emplace(temporary_name(path_)).path());
  if (there) fchmod(fd_, status.st_mode & 07777);  // a private file stays private; a failure is ignored
}

Replacement::~Replacement() {
  temporary_.reset();  // before closing the descriptor frees its lock
  if (fd_ >= 0) system_calls().close(fd_);
}

void Replacement::write(const void* bytes, int64_t n) {
  const Scope scope(path_);
  const char* p = static_cast<const char*>(bytes);
  while (n > 0) {
    // Linux writes at most about 2^31 bytes at once.
    const ssize_t done = system_calls().write(fd_, p, static_cast<size_t>(std::min<int64_t>(n, int64_t{1} << 30)));
    if (done < 0 && errno == EINTR) continue;
    check_written(done >= 0, path_, "cannot write");
    check_io(done > 0, "cannot write: the system took no bytes");
    p += done;
    n -= done;
  }
}

void Replacement::rehearse(const std::string& path, int64_t bytes) {
  struct stat status {};
  if (descriptor_of(path) < 0 && stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
      !S_ISDIR(status.st_mode)) {
    const bool writable = faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
    check_io(writable, path, ": cannot be written: ", std::strerror(errno));
    check_io(!S_ISSOCK(status.st_mode), path, ": is a socket, which cannot be written as a file");
    return;
  }
  const Replacement trial(path);
  if (!trial.temporary_ || fallocate(trial.fd_, 0, 0, bytes) == 0) return;
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;  // else the file system cannot tell
  check_io(!full, path, ": there is no room for ", bytes, " bytes: ", std::strerror(errno));
}

void Replacement::commit() {
  if (!temporary_) return;  // a device has the bytes already
  const Scope scope(path_);
  const SystemCalls& system = system_calls();
  const auto succeed = [](int status, const char* what) { check_io(status == 0, what, ": ", std::strerror(errno)); };
  succeed(system.fsync(fd_), "cannot write it to disk");
  // Opened before the rename: if this fails, the old file stays.
  const int folder = system.open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  check_io(folder >= 0, "cannot open its folder: ", std::strerror(errno));
  const auto close = [&system](const int* fd) { system.close(*fd); };
  const std::unique_ptr<const int, decltype(close)> closed(&folder, close);
  struct stat made {};
  if (const auto& check = replacement_check(); check && fstat(fd_, &made) == 0) check(given_, made);
  // The file stays open, and so locked, until the rename. After fsync its close has nothing to write.
  succeed(system.rename(temporary_->path().c_str(), path_.c_str()), "cannot give the new file its name");
  temporary_->finish();
  // Some network file systems cannot fsync a folder and return EINVAL.
  const int reason = system.fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
  check_io(reason == 0, "cannot write its folder to disk: ", std::strerror(reason));
}

}  // namespace isonorm::io
