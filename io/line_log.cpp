#include "io/line_log.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/replacement.h"

namespace isonorm::io {

LineLog::LineLog(const std::string& path, std::string_view begin) : path_(path) {
  if (path.empty()) return;
  const int descriptor = descriptor_of(path);
  if (descriptor >= 0)
    file_ = fdopen(open_again(path, descriptor), "w");
  else
    file_ = std::fopen(path.c_str(), std::filesystem::is_regular_file(path) ? "a+e" : "ae");
  check_io(file_ != nullptr, path, ": cannot be written: ", std::strerror(errno));
  kept_ = descriptor < 0 && std::filesystem::is_regular_file(path);
  if (!kept_) return;
  try {
    check_io(flock(fileno(file_), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, path,
             ": another process is writing this log");
    std::string there(begin.size(), '\0');
    const ssize_t read = pread(fileno(file_), there.data(), there.size(), 0);
    there.resize(static_cast<size_t>(std::max<ssize_t>(0, read)));
    check(begin.starts_with(there), path,
          ": this is not a log of isonorm, because it begins differently: choose another file");
  } catch (...) {
    std::fclose(file_);
    throw;
  }
}

void LineLog::keep(int64_t bytes) {
  if (!kept_) return;
  check_io(ftruncate(fileno(file_), bytes) == 0, path_, ": cannot be written: ", std::strerror(errno));
  char last = '\n';
  if (bytes > 0 && pread(fileno(file_), &last, 1, bytes - 1) == 1 && last != '\n') write("\n");
}

LineLog::~LineLog() {
  if (file_) std::fclose(file_);
}

void LineLog::write(const std::string& line) {
  const bool ok = std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0;
  check_written(ok, path_, path_ + ": writing failed");
}

}  // namespace isonorm::io
