// Config files: the options of a command as TOML.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "training/records/manifest.h"

namespace isonorm::tools {

// Sets the command's options that were not given to the values in this file: `width = 64`, `no-bias = true`. An array
// gives the values that the command line separates by commas. Names are the command line's. Does nothing if `file` is
// empty. Throws Error (io) if the file cannot be read, is not a regular file or has over 1 MiB. Throws UsageError,
// naming the entry, if the command has no such option or the option cannot have this value.
void take_config(CLI::App& command, const std::string& file);

// The beginning of every file that config_of() writes.
inline constexpr std::string_view kConfigBegin = "# The options of a training: isonorm ";

// Does the same for a file with the options of another command, `owner`. Ignores options that `command` does not have,
// and the other command's steps.
void take_config(CLI::App& command, const std::string& file, CLI::App& owner);

// Writes the text of a config file with these options ("--width" "16") of this command.
std::string config_of(const std::string& verb, const training::OptionList& options);

}  // namespace isonorm::tools
