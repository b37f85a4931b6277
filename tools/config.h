// The options of a command as a TOML file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "training/records/manifest.h"

namespace isonorm::tools {

// Gives the command the options of this file that it was not given: `width = 64`, `no-bias = true`, an array for values by commas;
// names as the command line has them. Throws Error (io) if the file cannot be read, is no regular file or has over 1 MiB, UsageError naming what is no option or
// has no such value. No name, no file.
void take_config(CLI::App& command, const std::string& file);

// How such a file of ours begins.
inline constexpr std::string_view kConfigBegin = "# The options of a training: isonorm ";

// The same for a file of another verb's options. Passes over those that `command` does not have, and over steps, which are the
// other verb's.
void take_config(CLI::App& command, const std::string& file, CLI::App& owner);

// Such a file of options ("--width" "16") of this verb.
std::string config_of(const std::string& verb, const training::OptionList& options);

}  // namespace isonorm::tools
