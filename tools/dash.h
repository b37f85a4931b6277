// "-" in the place of a file name: standard input if the verb reads the file, standard output if the verb writes it.
#pragma once

#include <CLI/CLI.hpp>

namespace isonorm::tools {

// Makes the verb's options take "-". Its value becomes /dev/stdin or /dev/stdout. It stays "-", which check_outputs() and
// make_folder() refuse, if the option names a folder or a file that the verb writes several times, such as --checkpoint. Call it
// when the verb has all options.
void take_dashes(CLI::App& verb);

}  // namespace isonorm::tools
