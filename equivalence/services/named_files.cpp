#include "equivalence/services/named_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/system/failures.h"
#include "core/system/name_pattern.h"
#include "core/system/profile.h"
#include "exchange/hub/folder.h"
#include "io/data/image_sets.h"
#include "io/replacement.h"
#include "io/tokenizers/tokenizer.h"

namespace isonorm::services {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRoom = int64_t{1} << 16;  // bytes that must be free on the disk of an output
constexpr size_t kLongestWord = 40;          // of the word that replaces the star of several files
constexpr std::pair<const char*, const char*> kStreams[] = {{"standard output", "/dev/stdout"},
                                                            {"standard error", "/dev/stderr"}};

// The names of the files that are read.
std::vector<std::string> names_of_input(const NamedFile& input) {
  std::vector<std::string> names = input.beside;
  if (input.path.empty()) return names;
  std::error_code none;
  for (const std::string& name : tokenizers::files_of(input.path)) names.push_back(name);
  if (fs::is_directory(input.path, none))
    for (const std::string& name : hub::files_in(input.path)) names.push_back(name);
  return names;
}

// The names of the files that are written, except names with a star.
std::vector<std::string> names_of_output(const NamedFile& output) {
  std::vector<std::string> names = output.beside;
  if (output.written != Written::several) names.insert(names.begin(), output.path);
  return names;
}

// Returns true if `output` may make or remove the file `name` because it matches a pattern: <path>.tmp.<16 digits>, or
// for several files any word in place of the star.
bool matches(const NamedFile& output, const std::string& name) {
  if (output.written == Written::in_place) return false;
  const fs::path file = io::followed(name);
  if (output.written == Written::whole)
    return file.filename().string().find(".tmp.") != std::string::npos && io::is_temporary_of(output.path, file);
  const fs::path all = output.path;
  const std::string pattern = all.filename().string(), one = file.filename().string();
  std::vector<std::string> stars;
  std::error_code none;
  return (names::matches(pattern, one, stars) || names::matches(pattern + ".tmp.*", one, stars)) &&
         fs::equivalent(all.parent_path(), fs::absolute(file).parent_path(), none);
}

// Checks that a file can be written in place. If it does not exist, checks that a file can be created in its folder.
// Does not create the file: it may be a lock (io/unfinished.h), which another process could take before the file is
// removed.
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

void check_streams(const NamedFile& file) {
  if (file.path.empty() || io::is_open_file(io::followed(file.path))) return;
  for (const auto& [what, stream] : kStreams)
    if (one_file(file.path, stream))
      throw UsageError(text(file.option, ": ", file.path, " is the file that ", what, " goes to"));
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

}  // namespace

std::optional<FileId> file_id(const std::string& path) {
  struct stat status {};
  if (path.empty()) return {};
  if (stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) return {};
    return FileId{status.st_dev, status.st_ino};
  }
  std::error_code none;
  const fs::path whole = fs::weakly_canonical(fs::absolute(io::followed(path)), none);
  if (whole.empty()) return {};  // not a valid name for the system
  return FileId{.path = whole.string()};
}

Registry::Registry(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  struct Name {
    std::string name, option;
  };
  std::vector<Name> read, made;
  for (const NamedFile& input : inputs)
    for (std::string& name : names_of_input(input)) {
      if (const auto id = file_id(name)) inputs_.emplace(*id, input.option);
      read.push_back({std::move(name), input.option});
    }
  const auto refuse_input = [](const NamedFile& output, const std::string& name, const std::string& option) {
    throw UsageError(text(output.option, ": ", name, " is the file of ", option, ", which would be lost"));
  };
  const auto refuse_output = [](const NamedFile& output, const std::string& name, const std::string& option) {
    throw UsageError(text(option, " and ", output.option, " name the same file ", name));
  };
  std::map<FileId, std::string> of_outputs;
  for (const NamedFile& output : outputs) {
    for (const Name& n : read)
      if (matches(output, n.name)) refuse_input(output, n.name, n.option);
    for (const std::string& name : names_of_output(output)) {
      const auto id = file_id(name);
      if (const auto at = id ? inputs_.find(*id) : inputs_.end(); at != inputs_.end())
        refuse_input(output, name, at->second);
      if (id)
        if (const auto [at, is_new] = of_outputs.emplace(*id, output.option); !is_new && at->second != output.option)
          refuse_output(output, name, at->second);
      made.push_back({name, output.option});
    }
  }
  for (const NamedFile& output : outputs)
    for (const Name& n : made)
      if (n.option != output.option && matches(output, n.name)) refuse_output(output, n.name, n.option);
}

void Registry::check_replacement(const std::string& path, const struct stat& made) {
  // The new file may have the inode of a file that was removed meanwhile.
  const FileId made_id{made.st_dev, made.st_ino};
  inputs_.erase(made_id), written_.erase(made_id);
  struct stat there {};
  if (stat(path.c_str(), &there) == 0) {
    const FileId id{there.st_dev, there.st_ino};
    if (const auto input = inputs_.find(id); input != inputs_.end())
      check_io(false, path, ": is the file of ", input->second, " by now, which would be lost");
    if (const auto other = written_.find(id); other != written_.end() && other->second != path)
      check_io(false, path, ": is the file ", other->second, " by now, which was just written");
  }
  written_.emplace(made_id, path);
}

NamedFile profile_output() {
  const char* wish = std::getenv("ISONORM_PROFILE");
  const std::string file = wish && std::string_view(wish) != "0" && std::string_view(wish) != "1" ? wish : "";
  return {"ISONORM_PROFILE", file, Written::in_place};
}

// errno is read after the call: the arguments of a single call are evaluated in any order.
void check_access(const std::string& path, const std::string& file, int mode) {
  const bool allowed = faccessat(AT_FDCWD, file.c_str(), mode, AT_EACCESS) == 0;
  check_io(allowed, path, ": cannot be written: ", std::strerror(errno));
}

bool is_standard_output(const std::string& path) {
  struct stat file {
  }, out{};
  if (stat(path.c_str(), &file) != 0 || fstat(STDOUT_FILENO, &out) != 0) return false;
  const bool same = file.st_dev == out.st_dev && file.st_ino == out.st_ino;
  return same && (io::is_open_file(io::followed(path)) || S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

bool one_file(const std::string& a, const std::string& b) {
  const auto id = file_id(a);
  return id && id == file_id(b);
}

NamedFile data_input(const std::string& path) {
  return {.option = "--data", .path = path, .beside = data::data_files(path)};
}

NamedFile test_data_input(const std::string& path) {
  if (path.empty()) return {};
  return {.option = "--test-data", .path = path, .beside = data::data_files(path)};
}

Registry check_files(const NamedFiles& f) try {
  std::vector<NamedFile> written = {profile_output()};
  written.insert(written.end(), f.outputs.begin(), f.outputs.end());
  std::erase_if(written, [](const NamedFile& file) { return file.path.empty(); });
  std::ranges::for_each(written, check_dash), std::ranges::for_each(f.inputs, check_dash);
  Registry files(written, f.inputs);
  for (const NamedFile& output : written) check_streams(output);
  for (const NamedFile& input : f.inputs) check_streams(input);
  check_standard_output(written);
  for (const NamedFile& output : written) rehearse(output);
  return files;
} catch (...) {
  if (profile::recording()) profile::stop();  // else it would be written at the program's end, also if refused
  throw;
}

}  // namespace isonorm::services
