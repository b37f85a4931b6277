#include "tools/config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "tools/ending.h"
#include "tools/suggestion.h"
#include "tools/toml.h"

namespace isonorm::tools {
namespace {

// The option of an entry's name.
CLI::Option* option_named(CLI::App& command, const std::string& name) {
  std::string word = text("--", name);
  std::ranges::replace(word, '_', '-');
  CLI::Option* option = command.get_option_no_throw(word);
  if (word == "--config" || word == "--help" || word == "--version")
    throw UsageError(text(word, " is for the command line alone"));
  if (!option) throw UsageError(text("there is no option ", printable(name, 60), meant(word, words_of(command))));
  return option;
}

}  // namespace

void take_config(CLI::App& command, const std::string& file) {
  if (file.empty()) return;
  std::ifstream in(file);
  check_io(in.is_open() && !std::filesystem::is_directory(file), file, ": cannot be read");
  const std::string lines{std::istreambuf_iterator<char>(in), {}};
  check_io(!in.bad(), file, ": cannot be read");
  std::set<const CLI::Option*> taken;
  const std::string verb = command.get_name();
  try {
    for (const TomlEntry& item : read_toml(lines)) {
      if (!item.section.empty() && item.section != verb)
        throw UsageError(text("there is no section ", printable(item.section, 60), ", expected ", verb));
      CLI::Option* option = option_named(command, item.name);
      std::string value;  // several by commas, as the command line takes them
      for (const std::string& one : item.values) value += text(value.empty() ? "" : ",", one);
      if (option->count() > 0 && !taken.contains(option)) continue;  // the command line wins
      if (!taken.insert(option).second) throw UsageError(text(printable(item.name, 60), " is there twice"));
      bool excluded = false;
      for (const CLI::Option* other : option->get_excludes()) {
        if (taken.contains(other)) throw UsageError(text(option->get_name(), " excludes ", other->get_name()));
        excluded = excluded || other->count() > 0;
      }
      if (excluded) continue;
      option->add_result(value);
      option->run_callback();
    }
  } catch (const CLI::Error& e) {
    throw UsageError(text(file, ": ", e.what()));
  } catch (const UsageError& e) {
    throw UsageError(text(file, ": ", e.what()));
  }
}

std::string config_of(const std::string& verb, const training::OptionList& options) {
  std::string all = text("# The options of a training: isonorm ", verb, " --config FILE repeats it.\n");
  for (const auto& [word, value] : options) all += toml_line(word.substr(2), value);
  return all;
}

}  // namespace isonorm::tools
