#include "tools/dash.h"

#include <algorithm>
#include <string>

namespace isonorm::tools {
namespace {

// An option means the same in every verb.
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
