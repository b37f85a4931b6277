#include "tools/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/system/profile.h"
#include "core/system/terminal.h"
#include "io/data/data_files.h"
#include "io/replacement.h"
#include "tools/pipes.h"
#include "tools/ending.h"

namespace isonorm::tools {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRoom = int64_t{1} << 16;  // bytes that a disk has to have left for an output
constexpr size_t kLongestWord = 40;          // that the star of several files stands for
constexpr std::pair<const char*, const char*> kStreams[] = {{"standard output", "/dev/stdout"},
                                                            {"standard error", "/dev/stderr"}};

// The system's reason is asked for after the call: arguments of one call are evaluated in any order.
void check_access(const std::string& path, const std::string& what, int mode) {
  const bool allowed = faccessat(AT_FDCWD, what.c_str(), mode, AT_EACCESS) == 0;
  check_io(allowed, path, ": cannot be written: ", std::strerror(errno));
}

// Checks that a file can be written in place. If it does not exist, checks that a file can be made in its folder. Makes
// no file of this name: it may be a lock (io/unfinished.h), which another process could take before it is removed.
void rehearse_in_place(const std::string& path) {
  std::error_code none;
  check_io(!fs::is_directory(path, none), path, ": is a folder");
  if (faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0) return check_access(path, path, W_OK);
  io::Replacement::rehearse(path, 0);
}

void rehearse(const NamedFile& output) {
  std::string path = output.path;
  if (output.written == Written::several) path.replace(path.rfind('*'), 1, kLongestWord, 'x');
  output.written == Written::in_place ? rehearse_in_place(path) : io::Replacement::rehearse(path, kRoom);
  for (const std::string& name : output.beside) rehearse_in_place(name);
}

// The file of ISONORM_PROFILE (core/system/profile.h).
NamedFile profile_output() {
  const char* wish = std::getenv("ISONORM_PROFILE");
  const std::string file = wish && std::string_view(wish) != "0" && std::string_view(wish) != "1" ? wish : "";
  return {"ISONORM_PROFILE", file, Written::in_place};
}

void check_streams(const NamedFile& file) {
  if (file.path.empty() || io::is_open_file(io::followed(file.path))) return;
  for (const auto& [what, stream] : kStreams)
    if (one_file(file.path, stream))
      throw UsageError(text(file.option, ": ", file.path, " is the file that ", what, " goes to"));
}

// Returns true if `path` is the file, pipe or socket of standard output. (Two opens of one device, such as a terminal, do no
// harm to each other.)
bool is_standard_output(const std::string& path) {
  struct stat file {
  }, out{};
  if (stat(path.c_str(), &file) != 0 || fstat(STDOUT_FILENO, &out) != 0) return false;
  const bool same = file.st_dev == out.st_dev && file.st_ino == out.st_ino;
  return same && (io::is_open_file(io::followed(path)) || S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

void check_dash(const NamedFile& file) {
  if (file.path == "-")
    throw UsageError(text(file.option, ": is not a file that can be standard input or output; ./- is a file named -"));
}

// Throws UsageError if two options name standard output, or a terminal would get a binary file.
void check_standard_output(const std::vector<NamedFile>& outputs) {
  const NamedFile* first = nullptr;
  for (const NamedFile& output : outputs) {
    if (!is_standard_output(output.path)) continue;
    if (output.binary && isatty(STDOUT_FILENO) != 0)
      throw UsageError(text(output.option, ": a terminal shows no binary file: name a file, or send it to a pipe"));
    if (first) throw UsageError(text(first->option, " and ", output.option, " name the same file ", output.path));
    first = &output;
  }
}

bool checked = false, owns_process = false;
std::optional<Registry> registry;  // of a process that is owned

}  // namespace

bool one_file(const std::string& a, const std::string& b) {
  const auto id = file_id(a);
  return id && id == file_id(b);
}

void drop_unchecked_profile() {
  if (!checked && !profile_output().path.empty() && profile::recording()) profile::stop();
}

void own_this_process() {
  owns_process = true;
  io::replacement_check() = [](const std::string& path, const struct stat& made) {
    if (registry) registry->check_replacement(path, made);
  };
}

NamedFile data_input(const std::string& path) {
  return {.option = "--data", .path = path, .beside = data::data_files(path)};
}

NamedFile test_data_input(const std::string& path) {
  if (path.empty()) return {};
  return {.option = "--test-data", .path = path, .beside = data::data_files(path)};
}

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) try {
  std::vector<NamedFile> written = {profile_output()};
  written.insert(written.end(), outputs.begin(), outputs.end());
  std::erase_if(written, [](const NamedFile& f) { return f.path.empty(); });
  std::ranges::for_each(written, check_dash), std::ranges::for_each(inputs, check_dash);
  Registry files(written, inputs);
  for (const NamedFile& output : written) check_streams(output);
  for (const NamedFile& input : inputs) check_streams(input);
  check_standard_output(written);
  for (const NamedFile& output : written) rehearse(output);
  checked = true;
  if (!owns_process) return;
  keep_pipes(inputs);
  registry = std::move(files);
  for (const NamedFile& output : written)
    if (is_standard_output(output.path)) stdout = stderr;  // printf and the like look there
} catch (...) {
  if (profile::recording()) profile::stop();  // else it were written as the program ends, refused or not
  throw;
}

void check_ours(const std::string& path, std::string_view begin, const std::string& output) {
  check_io(io::begins_with(path, begin), path, ": is in the way: it is written with ", output,
           ", but the file that is there is not of isonorm");
}

void make_folder(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") throw UsageError("- is standard output, not a folder; ./- is a folder named -");
  std::error_code failed;
  fs::create_directories(path, failed);
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

void write(const reports::Document& document, const std::string& report, const std::string& json) {
  if (!json.empty()) write_file(json, to_json(document));
  if (!report.empty()) write_file(report, to_html(document));
}

void Printing::operator()(const std::function<void()>& print) try { print(); } catch (const Error&) {
  if (!failure_) failure_ = std::current_exception();
}

void Printing::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

void print_and_write(std::string_view shown, const std::function<void()>& write_files) {
  Printing printing;
  printing([&] { print(shown); });
  write_files();
  printing.check();
}

void show(const reports::Document& document, bool quiet, const std::string& report, const std::string& json) {
  const bool color = wants_color(stdout);
  const size_t width = line_width(stdout);
  print_and_write(quiet ? closing(document, color, width) + "\n" : to_text(document, color, width),
                  [&] { write(document, report, json); });
}

}  // namespace isonorm::tools
