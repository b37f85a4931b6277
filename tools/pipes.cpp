#include "tools/pipes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "core/error.h"
#include "distributed/world.h"
#include "io/replacement.h"
#include "tools/ending.h"

namespace isonorm::tools {
namespace {

// Opens a regular file without a name; in memory if the temporary folder does not allow one.
int file_without_name() {
  std::error_code none;
  const std::string folder = std::filesystem::temp_directory_path(none).string();
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return file >= 0 ? file : memfd_create("isonorm", MFD_CLOEXEC);
}

// Errors begin with `what`.
void copy_to_end(const std::string& what, int from, int to) {
  std::vector<char> piece(1 << 20);
  for (;;) {
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    check_io(got >= 0, what, " cannot be read: ", std::strerror(errno));
    if (got == 0) return;
    for (ssize_t at = 0; at < got;) {
      const ssize_t kept = ::write(to, piece.data() + at, static_cast<size_t>(got - at));
      if (kept < 0 && errno == EINTR) continue;
      check_io(kept > 0, what, " cannot be kept in a temporary file: ", std::strerror(errno));
      at += kept;
    }
  }
}

void keep_pipe(const std::string& path, int descriptor) {
  struct stat status {};
  const bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (regular && lseek(descriptor, 0, SEEK_CUR) == 0) return;
  const int file = file_without_name();
  const std::string what = descriptor == STDIN_FILENO ? "standard input" : path;
  check_io(file >= 0, what, " cannot be kept in a temporary file: ", std::strerror(errno));
  const auto close_file = [](const int* fd) { close(*fd); };
  const std::unique_ptr<const int, decltype(close_file)> closed(&file, close_file);
  copy_to_end(what, descriptor, file);
  check_io(lseek(file, 0, SEEK_SET) == 0 && dup2(file, descriptor) == descriptor, what,
           " cannot be replaced by a temporary file: ", std::strerror(errno));
}

}  // namespace

void keep_pipes(const std::vector<services::NamedFile>& inputs) {
  std::map<int, services::NamedFile> pipes;  // by descriptor
  for (const services::NamedFile& input : inputs) {
    const int descriptor = input.path.empty() ? -1 : io::descriptor_of(input.path);
    if (descriptor < 0 || descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO) continue;
    const auto [at, is_new] = pipes.emplace(descriptor, input);
    if (!is_new && at->second.option != input.option)
      throw UsageError(text(at->second.option, " and ", input.option, " both name ", input.path));
  }
  if (!pipes.empty() && distributed::one_of_several())
    throw UsageError(text(pipes.begin()->second.option, ": ", pipes.begin()->second.path,
                          " reaches only one of the processes of mpirun; give a file instead"));
  for (const auto& [descriptor, input] : pipes) keep_pipe(input.path, descriptor);
}

namespace {

// An option means the same in every command.
constexpr const char* kRead[] = {"A",         "B",           "FILE",     "IN",          "LOG",        "MODEL",  "SPEC",
                                 "TOKENIZER", "--basis",     "--config", "--control",   "--data",     "--init", "--map",
                                 "--order",   "--reference", "--spec",   "--test-data", "--tokenizer"};
constexpr const char* kWritten[] = {"OUT", "--ema-file", "--json", "--log", "--report"};

void replace_dash(CLI::Option& option, const char* by) {
  option.transform([by](const std::string& word) { return word == "-" ? by : word; });
}

}  // namespace

void take_dashes(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    const auto is = [&](const char* name) { return option->check_name(name); };
    if (std::ranges::any_of(kRead, is)) replace_dash(*option, "/dev/stdin");
    if (std::ranges::any_of(kWritten, is)) replace_dash(*option, "/dev/stdout");
  }
}

}  // namespace isonorm::tools
