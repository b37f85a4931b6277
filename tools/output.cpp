#include "tools/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "data/cifar10.h"
#include "data/fashion_mnist.h"
#include "io/replacement.h"
#include "tools/ending.h"

namespace isonorm::tools {
namespace {

namespace fs = std::filesystem;

// The system's reason is asked for after the call: arguments of one call are evaluated in any order.
void check_access(const std::string& path, const std::string& what, int mode) {
  const bool allowed = access(what.c_str(), mode) == 0;
  check_io(allowed, path, ": cannot be written: ", std::strerror(errno));
}

void check_writable(const std::string& path) {
  std::error_code ignored;
  check_io(!fs::is_directory(path, ignored), path, ": is a folder");
  const fs::path folder = fs::path(io::followed(path)).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  check_access(path, where, W_OK | X_OK);
  if (access(path.c_str(), F_OK) == 0) check_access(path, path, W_OK);
}

// The files that an input stands for.
std::vector<std::string> files_of(const std::string& input) {
  std::error_code none;
  if (!fs::is_directory(input, none)) return {input};
  try {
    return data::Cifar10::is_in(input) ? data::Cifar10::files(input) : data::FashionMnist::files(input);
  } catch (const Error&) {
    return {};  // they are missing, which whoever reads them says
  }
}

}  // namespace

bool one_file(const std::string& a, const std::string& b) {
  std::error_code none;
  if (fs::exists(a, none) && fs::exists(b, none)) return fs::is_regular_file(a, none) && fs::equivalent(a, b, none);
  return fs::weakly_canonical(fs::absolute(io::followed(a)), none) ==
         fs::weakly_canonical(fs::absolute(io::followed(b)), none);
}

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (const NamedFile& output : outputs) {
    if (output.path.empty()) continue;
    for (const NamedFile& input : inputs) {
      if (input.path.empty()) continue;
      for (const std::string& file : files_of(input.path))
        if (one_file(output.path, file))
          throw UsageError(
              text(output.option, ": ", output.path, " is the file of ", input.option, ", which would be lost"));
    }
    for (const NamedFile& other : outputs) {
      if (&other == &output) break;
      if (!other.path.empty() && one_file(output.path, other.path))
        throw UsageError(text(other.option, " and ", output.option, " name the same file ", output.path));
    }
  }
  for (const NamedFile& output : outputs)
    if (!output.path.empty()) check_writable(output.path);
}

void make_folder(const std::string& path) {
  if (path.empty()) return;
  std::error_code failed;
  fs::create_directory(path, failed);
  const bool there = fs::is_directory(path);
  check_io(there || failed, path, ": is not a folder");
  check_io(there, path, ": cannot be made a folder: ", failed.message());
  check_access(path, path, W_OK | X_OK);
}

void write_file(const std::string& path, const std::string& content) {
  io::Replacement file(path);
  file.write(content);
  file.commit();
}

LineLog::LineLog(const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), fs::is_regular_file(path) ? "a+e" : "ae");
  check_io(file_ != nullptr, path, ": cannot be written: ", std::strerror(errno));
  if (!fs::is_regular_file(path)) return;
  try {
    check_io(flock(fileno(file_), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, path,
             ": another process is writing this log");
    constexpr std::string_view begin = "{\"manifest\":";
    char bytes[begin.size()];
    const ssize_t read = pread(fileno(file_), bytes, begin.size(), 0);
    check(begin.starts_with({bytes, static_cast<size_t>(std::max<ssize_t>(0, read))}), path,
          ": this is no log, which would begin with a manifest: choose another file");
  } catch (...) {
    std::fclose(file_);
    throw;
  }
}

void LineLog::keep(int64_t bytes) {
  if (!file_) return;
  check_io(ftruncate(fileno(file_), bytes) == 0 || errno == EINVAL, path_,  // EINVAL: a device or pipe
           ": cannot be written: ", std::strerror(errno));
  char last = '\n';
  if (bytes > 0 && pread(fileno(file_), &last, 1, bytes - 1) == 1 && last != '\n') write("\n");
}

LineLog::~LineLog() {
  if (file_) std::fclose(file_);
}

void LineLog::write(const std::string& line) {
  const bool ok = std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0;
  check_io(ok, path_, ": writing failed: ", std::strerror(errno));
}

}  // namespace isonorm::tools
