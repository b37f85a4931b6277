// What a word that is none was meant to be.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace isonorm::tools {

// Of a verb: "--width", "--depth", ...
std::vector<std::string> words_of(const CLI::App& verb);

// " (is --width meant?)", where one of the names is that near; else nothing.
std::string meant(const std::string& word, const std::vector<std::string>& names);

}  // namespace isonorm::tools
