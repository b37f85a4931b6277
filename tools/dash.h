// "-" as a file name: standard input if the verb reads the file, standard output if it writes it.
#pragma once

#include <CLI/CLI.hpp>

namespace isonorm::tools {

// Makes the verb's options accept "-", as /dev/stdin or /dev/stdout. If the option names a folder or a file that is
// written several times, such as --checkpoint, it stays "-", which check_outputs() and make_folder() refuse. Call it
// when the verb has all options.
void take_dashes(CLI::App& verb);

}  // namespace isonorm::tools
