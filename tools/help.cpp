#include "tools/help.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "reports/text_table.h"

namespace isonorm::tools {
namespace {

constexpr const char* kCommon = "Common options";
// Groups at the beginning and the end of help; all others are between them.
constexpr const char* kFirst[] = {"Arguments", kCommon, "Options"};
constexpr const char* kLast[] = {"Output", "Help"};

constexpr size_t kColumn = 26;      // column in which texts begin
constexpr size_t kLeastWidth = 20;  // least width of texts on a narrow terminal
constexpr size_t kLongChoice = 22;  // a longer list of values is moved to the text

// Names for the values of options whose type does not give a name. An option means the same in every command.
constexpr std::pair<const char*, const char*> kValues[] = {
    {"--data", "PATH"},          {"--test-data", "PATH"}, {"--json", "FILE"},        {"--report", "FILE"},
    {"--log", "FILE"},           {"--spec", "FILE"},      {"--map", "FILE"},         {"--reference", "FILE"},
    {"--checkpoint", "FILE"},    {"--best", "FILE"},      {"--ema-file", "FILE"},    {"--control", "FILE"},
    {"--basis", "BASIS"},        {"--tokenizer", "PATH"}, {"--svg", "FOLDER"},       {"--like", "FOLDER"},
    {"--tensorboard", "FOLDER"}, {"--forms", "NAMES"},    {"--optimizers", "NAMES"}, {"--architectures", "NAMES"},
    {"--no-decay", "PATTERNS"},  {"--order", "NAMES"},    {"--noise", "NAME"},       {"--family", "NAME"},
    {"--stop", "WORD"},          {"--grad", "NUMBERS"},   {"--gain", "NUMBERS"},     {"--bias", "NUMBERS"},
    {"--max-shard-size", "SIZE"}};

// "FILE", "N", "f32|f64"; the parser's type is "TEXT", "INT:POSITIVE" or "TEXT:{f32,f64}".
std::string value_of(const CLI::Option& option) {
  if (is_flag(option) || option.get_positional()) return "";
  const std::string type = option.get_type_name(), kind = type.substr(0, type.find(':')),
                    checked = kind == type ? "" : type.substr(kind.size() + 1);
  if (checked.starts_with('{') && checked.ends_with('}')) {
    std::string names = checked.substr(1, checked.size() - 2);
    std::ranges::replace(names, ',', '|');
    return names;
  }
  for (const auto& [name, value] : kValues)
    if (option.check_name(name)) return value;
  if (kind == "TEXT" && !checked.empty()) return checked;
  return kind == "INT" || kind == "UINT" ? "N" : kind == "FLOAT" ? "X" : kind;
}

std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  std::string names;
  for (const std::string& s : option.get_snames()) names += "-" + s + ", ";
  return names + "--" + option.get_lnames().front();
}

// "0: no clipping" becomes "0 (default): no clipping"; otherwise the default is added at the end.
std::string with_default(std::string what, const std::string& value) {
  if (value.empty() || what.find("default") != what.npos) return what;
  for (const std::string& named : {"; " + value + ": ", ": " + value + ": "})
    if (const size_t at = what.find(named); at != what.npos) return what.insert(at + named.size() - 2, " (default)");
  if (what.starts_with(value + ": ")) return what.insert(value.size(), " (default)");
  return text(what, " (default: ", value, ")");
}

HelpEntry entry_of(const CLI::Option& option) {
  HelpEntry e{names_of(option), value_of(option), option.get_description()};
  if (e.value.size() > kLongChoice && e.value.find('|') != e.value.npos) {
    std::string listed = e.value;
    for (size_t at = 0; (at = listed.find('|', at)) != listed.npos; at += 2) listed.replace(at, 1, ", ");
    e.text += text("; one of ", listed), e.value = "NAME";
  }
  std::string value = option.get_default_str();
  if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);  // a list
  e.text = with_default(e.text, value);
  if (option.get_required() && !option.get_positional()) e.text += " (required)";
  std::string excluded;
  for (const CLI::Option* other : option.get_excludes())
    excluded += text(excluded.empty() ? "" : ", ", other->get_name());
  return e.text += excluded.empty() ? "" : text(" (not with ", excluded, ")"), e;
}

size_t place(const std::string& heading) {
  const auto first = std::ranges::find(kFirst, heading), last = std::ranges::find(kLast, heading);
  return first != std::end(kFirst) ? static_cast<size_t>(first - std::begin(kFirst))
         : last != std::end(kLast) ? static_cast<size_t>(last - std::begin(kLast)) + 20
                                   : 10;
}

// Appends paragraphs, with the first line at `indent` and the others at `indent` + `hanging`.
void append(std::string& out, const std::string& s, size_t width, size_t indent, size_t hanging = 0) {
  const std::string gap(indent, ' ');
  size_t begin = 0;
  for (size_t end; begin <= s.size(); begin = end + 1) {
    end = std::min(s.find('\n', begin), s.size());
    std::string lines =
        reports::wrapped(s.substr(begin, end - begin), std::max(width, indent + kLeastWidth) - indent, hanging);
    for (size_t at = 0; (at = lines.find('\n', at)) != lines.npos; at += 1 + indent) lines.insert(at + 1, gap);
    out += text(gap, lines, '\n');
  }
}

}  // namespace

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

std::string choices(const CLI::Option& option) {
  std::string value = value_of(option);
  if (value.find('|') == value.npos) return "";
  std::ranges::replace(value, '|', ' ');
  return value;
}

std::vector<CLI::App*> verbs_of(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

void lead_with(CLI::App& verb, std::initializer_list<const char*> options) {
  for (const char* name : options) verb.get_option(name)->group(kCommon);
}

Help help_of(const CLI::App& app) {
  const bool whole = app.get_parent() == nullptr;
  Help help{.command = whole ? "isonorm" : "isonorm " + app.get_name(), .description = app.get_description()};
  help.usage = help.command + (whole ? " VERB [OPTIONS]" : " [OPTIONS]");
  help.examples = examples_of(app.get_name());
  help.notes = app.get_footer();
  if (whole) {
    HelpGroup verbs{"Verbs"};
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
      verbs.entries.push_back({verb->get_name(), "", verb->get_description()});
    help.groups.push_back(std::move(verbs));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional())
      help.usage += text(" ", option->get_required() ? "" : "[", option->get_name(),
                         option->get_expected_max() > 1 ? " ..." : "", option->get_required() ? "" : "]");
    const std::string heading = option->get_positional() ? "Arguments" : option->get_group();
    auto group = std::ranges::find(help.groups, heading, &HelpGroup::heading);
    if (group == help.groups.end()) group = help.groups.insert(group, {heading, {}});
    group->entries.push_back(entry_of(*option));
  }
  std::ranges::stable_sort(help.groups, {}, [](const HelpGroup& g) { return place(g.heading); });
  return help;
}

std::string help_text(const Help& help, size_t width) {
  std::string out;
  append(out, help.description, width, 0);
  out += text("\nUsage: ", help.usage, '\n');
  if (!help.examples.empty()) out += "\nExamples:\n";
  for (const Example& e : help.examples) append(out, e.command, width, 2, 4), append(out, e.what, width, 6);
  for (const HelpGroup& group : help.groups) {
    out += text('\n', group.heading, ":\n");
    for (const HelpEntry& e : group.entries) {
      const std::string name = text("  ", e.names, e.value.empty() ? "" : " ", e.value);
      std::string what;
      append(what, e.text, width, kColumn);
      out += name.size() + 2 > kColumn ? text(name, '\n', what) : name + what.substr(name.size());
    }
  }
  if (!help.notes.empty()) append(out += '\n', help.notes, width, 0);
  return out;
}

namespace {

// Number of letters to insert, delete or replace (Levenshtein 1966).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t before = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j)
      before = std::exchange(row[j + 1], std::min({before + (a[i] != b[j]), row[j] + 1, row[j + 1] + 1}));
  }
  return row.back();
}

}  // namespace

std::vector<std::string> words_of(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

std::string meant(const std::string& word, const std::vector<std::string>& names) {
  std::string nearest;
  const size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  size_t least = letters >= 5 ? 3 : letters >= 3 ? 2 : 0;
  for (const std::string& name : names)
    if (const size_t d = distance(word, name); d < least) nearest = name, least = d;
  return nearest.empty() ? "" : text(" (is ", nearest, " meant?)");
}

}  // namespace isonorm::tools
