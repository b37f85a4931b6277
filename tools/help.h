// The help of a command, for `--help`, the manual pages and the completions, and suggestions for mistyped words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace isonorm::tools {

struct Example {
  const char *verb, *command, *what;
};

// Returns the examples for a command, or for "isonorm".
std::vector<Example> examples_of(const std::string& verb);

// An option or an argument.
struct HelpEntry {
  std::string names;  // "-q, --quiet", "IN"
  std::string value;  // "N", "FILE", "f32|f64"; empty for a flag and an argument
  std::string text;   // includes the default and the excluded options
};

struct HelpGroup {
  std::string heading;
  std::vector<HelpEntry> entries = {};
};

struct Help {
  std::string command;  // "isonorm train"
  std::string description = {};
  std::string usage = {};  // "isonorm train [OPTIONS]"
  std::vector<Example> examples = {};
  std::vector<HelpGroup> groups = {};  // arguments, verbs, common options, then the other options
  std::string notes = {};
};

// Returns the help of a command, or of the program if `app` has no parent.
Help help_of(const CLI::App& app);

// Formats the help for a terminal of `width` columns. No line is longer, except for a single word that does not fit.
std::string help_text(const Help& help, size_t width);

// Lists these options of the command first, under "Common options". Throws CLI::OptionNotFound.
void lead_with(CLI::App& verb, std::initializer_list<const char*> options);

// The values of an option that takes one value from a list, "f32 f64"; empty for another option.
std::string choices(const CLI::Option& option);
bool is_flag(const CLI::Option& option);
std::vector<CLI::App*> verbs_of(CLI::App& app);

// Lists the options of a command: "--width", "--depth", ...
std::vector<std::string> words_of(const CLI::App& verb);

// " (is --width meant?)" if one of the names is similar; else empty.
std::string meant(const std::string& word, const std::vector<std::string>& names);

}  // namespace isonorm::tools
