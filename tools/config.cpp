#include "tools/config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "tools/ending.h"
#include "tools/suggestion.h"

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

// Its values by commas, as the command line takes several.
std::string value_of(const CLI::ConfigItem& item) {
  std::string all;
  for (const std::string& one : item.inputs) {
    if (one.find_first_of("\"'") == 0)
      throw UsageError(text(printable(item.name, 60), ": a text has no second quote, or a # in it"));
    all += text(all.empty() ? "" : ",", one);
  }
  return all;
}

bool is_number(const std::string& value) {
  return !value.empty() && value.find_first_not_of("0123456789.e+-") == value.npos;
}

// As what take_config() reads, nothing where it cannot be written so.
std::string toml(const std::string& value) {
  if (value.empty()) return "true";  // a flag
  if (is_number(value)) return value;
  if (value.front() != '\'' && value.find_first_of("\"\\#\n\r") == value.npos) return text('"', value, '"');
  return "";
}

}  // namespace

void take_config(CLI::App& command, const std::string& file) {
  if (file.empty()) return;
  std::ifstream in(file);
  check_io(in.is_open() && !std::filesystem::is_directory(file), file, ": cannot be read");
  std::set<const CLI::Option*> taken;
  const std::string verb = command.get_name();
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(in)) {
      if (item.name == "++" || item.name == "--") continue;  // a section begins or ends
      if (!item.parents.empty() && item.parents != std::vector{verb})
        throw UsageError(text("there is no section ", printable(item.parents.front(), 60), ", expected ", verb));
      CLI::Option* option = option_named(command, item.name);
      const std::string value = value_of(item);
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
  check_io(in.eof(), file, ": cannot be read");
}

std::string config_of(const std::string& verb, const training::OptionList& options) {
  std::string all = text("# The options of a training: isonorm ", verb, " --config FILE repeats it.\n");
  for (const auto& [word, value] : options) {
    const std::string written = toml(value), name = word.substr(2);
    all += written.empty() ? text("# ", name, " has to be given: it cannot be written here\n")
                           : text(name, " = ", written, '\n');
  }
  return all;
}

}  // namespace isonorm::tools
