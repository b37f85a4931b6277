// Suggestions for mistyped words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace isonorm::tools {

// The options of a verb: "--width", "--depth", ...
std::vector<std::string> words_of(const CLI::App& verb);

// " (is --width meant?)" if a name is similar; else empty.
std::string meant(const std::string& word, const std::vector<std::string>& names);

}  // namespace isonorm::tools
