#include "tools/output.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/system/name_pattern.h"
#include "core/system/profile.h"
#include "core/system/terminal.h"
#include "data/data_files.h"
#include "io/replacement.h"
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

// What is written under its own name: may it be, and if it is not there, can it be made?
void rehearse_in_place(const std::string& path) {
  std::error_code none;
  check_io(!fs::is_directory(path, none), path, ": is a folder");
  if (faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0) return check_access(path, path, W_OK);
  const std::string file = io::followed(path);
  const int made = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  check_io(made >= 0, path, ": cannot be written: ", std::strerror(errno));
  close(made), unlink(file.c_str());
}

void rehearse(const NamedFile& output) {
  for (const std::string& name : output.beside) rehearse_in_place(name);
  if (output.written == Written::in_place) return rehearse_in_place(output.path);
  std::string path = output.path;
  if (output.written == Written::several) path.replace(path.rfind('*'), 1, kLongestWord, 'x');
  io::Replacement::rehearse(path, kRoom);
}

// Whether `output` is the file, or makes or removes it on its way.
bool touches(const NamedFile& output, const std::string& file) {
  for (const std::string& name : output.beside)
    if (one_file(name, file)) return true;
  if (output.written != Written::several)
    return one_file(output.path, file) || (output.written == Written::whole && io::is_temporary_of(output.path, file));
  const fs::path all = output.path, one = io::followed(file);
  std::error_code none;
  std::vector<std::string> stars;
  const std::string pattern = all.filename().string(), name = one.filename().string();
  return fs::equivalent(all.parent_path(), fs::absolute(one).parent_path(), none) &&
         (names::matches(pattern, name, stars) || names::matches(pattern + ".tmp.*", name, stars));
}

bool touches(const NamedFile& output, const NamedFile& other) {
  for (const std::string& name : other.beside)
    if (touches(output, name)) return true;
  return !other.path.empty() && touches(output, other.path);
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

}  // namespace

bool one_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code none;
  if (fs::exists(a, none) && fs::exists(b, none)) return fs::is_regular_file(a, none) && fs::equivalent(a, b, none);
  const auto whole = [&](const std::string& name) {  // empty where the system takes no such name
    return fs::weakly_canonical(fs::absolute(io::followed(name)), none);
  };
  const fs::path one = whole(a);
  return !one.empty() && one == whole(b);
}

NamedFile data_input(const std::string& path) {
  return {.option = "--data", .path = path, .beside = data::data_files(path)};
}

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) try {
  std::vector<NamedFile> written = {profile_output()};
  written.insert(written.end(), outputs.begin(), outputs.end());
  std::erase_if(written, [](const NamedFile& f) { return f.path.empty(); });
  for (size_t i = 0; i < written.size(); ++i) {
    const NamedFile& output = written[i];
    for (const NamedFile& input : inputs)
      if (touches(output, input))
        throw UsageError(
            text(output.option, ": ", output.path, " is the file of ", input.option, ", which would be lost"));
    for (size_t j = 0; j < i; ++j)
      if (touches(output, written[j]) || touches(written[j], output))
        throw UsageError(text(written[j].option, " and ", output.option, " name the same file ", output.path));
    check_streams(output);
  }
  for (const NamedFile& input : inputs) check_streams(input);
  for (const NamedFile& output : written) rehearse(output);
} catch (...) {
  if (profile::recording()) profile::stop();  // else it were written as the program ends, refused or not
  throw;
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

void write(const reports::Document& document, const std::string& report, const std::string& json) {
  if (!json.empty()) write_file(json, to_json(document));
  if (!report.empty()) write_file(report, to_html(document));
}

void show(const reports::Document& document, bool quiet, const std::string& report, const std::string& json) {
  const bool color = wants_color(stdout);
  const size_t width = line_width(stdout);
  std::fputs((quiet ? closing(document, color, width) + "\n" : to_text(document, color, width)).c_str(), stdout);
  write(document, report, json);
}

}  // namespace isonorm::tools
