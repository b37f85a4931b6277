// Standard input and output as files of a command: pipes, and the file name "-".
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "equivalence/services/named_files.h"

namespace isonorm::tools {

// Reads inputs that are pipes or terminals of this process (/dev/stdin, or /dev/fd/63 from a shell's <(command)) to
// their end, and replaces them by temporary files without a name. Then their paths lead to regular files, which can be
// mapped and read twice. If standard input is a file that was read in part, it starts at the current position.
// Throws UsageError if two options name standard input, or if MPI has started several processes, since only one would
// get it; Error (io) if an input cannot be read or stored.
void keep_pipes(const std::vector<services::NamedFile>& inputs);

// Makes the command's options accept "-", as /dev/stdin or /dev/stdout. If the option names a folder or a file that is
// written several times, such as --checkpoint, it stays "-", which check_outputs() and make_folder() refuse. Call it
// when the command has all options.
void take_dashes(CLI::App& verb);

}  // namespace isonorm::tools
