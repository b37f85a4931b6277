#include "tools/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "core/system/name_pattern.h"
#include "tools/ending.h"
#include "tools/pipes.h"
#include "tools/help.h"

namespace isonorm::tools {
namespace {

constexpr int64_t kConfigLimit = int64_t{1} << 20;  // limit for the bytes of a config file

// The option with an entry's name.
CLI::Option* option_named(CLI::App& command, const std::string& name) {
  std::string word = text("--", name);
  std::ranges::replace(word, '_', '-');
  CLI::Option* option = command.get_option_no_throw(word);
  if (word == "--config" || word == "--help" || word == "--version")
    throw UsageError(text(word, " cannot be set in a config file, only on the command line"));
  if (!option) throw UsageError(text("there is no option ", printable(name, 60), meant(word, words_of(command))));
  return option;
}

// The value as on the command line, several ones separated by commas.
std::string word_of(const std::string& name, const toml::node& value) {
  if (const toml::array* values = value.as_array()) {
    std::string all;
    for (const toml::node& one : *values) {
      if (one.is_array()) throw UsageError(text(printable(name, 60), " is an array in an array"));
      all += text(all.empty() ? "" : ",", word_of(name, one));
    }
    return all;
  }
  if (const auto* words = value.as_string()) return words->get();
  if (const auto* number = value.as_integer()) return number_text(number->get());
  if (const auto* number = value.as_floating_point()) return number_text(number->get());
  if (const auto* said = value.as_boolean()) return said->get() ? "true" : "false";
  throw UsageError(text(printable(name, 60), " is a ", value.is_table() ? "table" : "time", ", which no option is"));
}

// Throws for a key with more than kMostNameParts parts, for which toml++ would nest that many tables; also in section
// names and inline tables. Ignores dots in strings and comments.
void check_depth(const std::string& lines) {
  int64_t parts = 1, line = 1;
  for (size_t at = 0; at < lines.size(); ++at) {
    const char c = lines[at];
    if (c == '#') at = std::min(lines.find('\n', at), lines.size()) - 1;
    if (c == '"' || c == '\'') {
      const std::string three(3, c), end = lines.compare(at, 3, three) == 0 ? three : std::string(1, c);
      size_t close = at + end.size();
      while (close < lines.size() && lines.compare(close, end.size(), end) != 0)
        line += lines[close] == '\n', close += c == '"' && lines[close] == '\\' ? 2 : 1;
      at = close + end.size() - 1;
      // A string in triple quotes may itself end with one or two quotes.
      for (int more = 0; end.size() == 3 && more < 2 && at + 1 < lines.size() && lines[at + 1] == c; ++more) ++at;
    }
    if (c == '.' && ++parts > kMostNameParts)
      throw UsageError(text("line ", line, ": a key has more than ", kMostNameParts, " parts"));
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) parts = 1;
    line += c == '\n';
  }
}

toml::table table_in(const std::string& lines) {
  check_depth(lines);
  try {
    return toml::parse(lines);
  } catch (const toml::parse_error& e) {
    throw UsageError(text("line ", e.source().begin.line, ": ", printable(e.description())));
  }
}

// The TOML string of `s`. Bytes that are not UTF-8 are kept, and make the file unreadable: TOML has no form for them.
std::string toml_string(const std::string& s) {
  std::string all = "\"";
  for (const char c : s)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      all += printed("\\u%04x", c);
    else
      (c == '"' || c == '\\' ? all += '\\' : all) += c;
  return all + '"';
}

// The value as TOML: a number if that is the same word (64-bit integers only), else text. An empty value is true.
std::string toml_of(const std::string& value) {
  int64_t integer = 0;
  double number = 0;
  if (read_number(value, integer) && number_text(integer) == value) return value;
  const bool real = value.find_first_of(".en") != value.npos;
  if (real && read_number(value, number) && number_text(number) == value) return value;
  return value.empty() ? "true" : toml_string(value);
}

// owner: the command whose options are in the file.
void take(CLI::App& command, CLI::App& owner, const toml::table& entries, std::set<const CLI::Option*>& taken) {
  for (const auto& [key, node] : entries) {
    const std::string name(key.str());
    if (const toml::table* section = node.as_table()) {
      if (name != owner.get_name())
        throw UsageError(text("there is no section ", printable(name, 60), ", expected ", owner.get_name()));
      take(command, owner, *section, taken);
      continue;
    }
    CLI::Option* option = option_named(owner, name);
    if (&owner != &command) {
      const std::string word = option->get_name();
      option = word == "--steps" ? nullptr : command.get_option_no_throw(word);
      if (!option) continue;
    }
    const std::string value = word_of(name, node);
    if (value.find('\0') != value.npos) throw UsageError(text(printable(name, 60), " has a character 0"));
    if (value.empty() && option->get_expected_max() == 0)
      throw UsageError(text(option->get_name(), ": \"\" is not true or false"));
    if (option->count() > 0 && !taken.contains(option)) continue;  // the command line has precedence
    if (!taken.insert(option).second) throw UsageError(text(printable(name, 60), " is there twice"));
    bool excluded = false;
    for (const CLI::Option* other : option->get_excludes()) {
      if (taken.contains(other)) throw UsageError(text(option->get_name(), " excludes ", other->get_name()));
      excluded = excluded || other->count() > 0;
    }
    if (excluded) continue;
    option->add_result(value);
    option->run_callback();
  }
}

}  // namespace

void take_config(CLI::App& command, const std::string& file, CLI::App& owner) {
  if (file.empty()) return;
  keep_pipes({{"--config", file}});  // before check_outputs(): the file names the outputs
  const std::string lines = read_text(file, kConfigLimit);
  try {
    std::set<const CLI::Option*> taken;
    take(command, owner, table_in(lines), taken);
  } catch (const CLI::Error& e) {
    throw UsageError(text(file, ": ", e.what()));
  } catch (const UsageError& e) {
    throw UsageError(text(file, ": ", e.what()));
  }
}

void take_config(CLI::App& command, const std::string& file) { take_config(command, file, command); }

std::string config_of(const std::string& verb, const training::OptionList& options) {
  std::string all = text(kConfigBegin, verb, " --config FILE repeats it.\n");
  for (const auto& [word, value] : options) all += text(word.substr(2), " = ", toml_of(value), '\n');
  return all;
}

}  // namespace isonorm::tools
