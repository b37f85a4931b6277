#include "tools/registry.h"

#include <filesystem>

#include "core/error.h"
#include "core/system/name_pattern.h"
#include "exchange/hub/folder.h"
#include "io/replacement.h"
#include "io/tokenizers/tokenizer.h"
#include "tools/ending.h"

namespace isonorm::tools {
namespace {

namespace fs = std::filesystem;

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

// The names of the files that are written, but for those with a star.
std::vector<std::string> names_of_output(const NamedFile& output) {
  std::vector<std::string> names = output.beside;
  if (output.written != Written::several) names.insert(names.begin(), output.path);
  return names;
}

// Returns true if `output` may make or remove the file `name` because it matches a pattern: <path>.tmp.<16 digits>, or for
// several files any word in place of the star.
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
  if (whole.empty()) return {};  // the system takes no such name
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

}  // namespace isonorm::tools
