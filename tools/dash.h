// "-" in the place of a file name: standard input if the verb reads the file, standard output if the verb writes it.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "tools/registry.h"

namespace isonorm::tools {

// Makes the verb's options take "-". Its value becomes /dev/stdin or /dev/stdout. It stays "-", which check_outputs() and
// make_folder() refuse, if the option names a folder or a file that the verb writes several times, such as --checkpoint. Call it
// when the verb has all options.
void take_dashes(CLI::App& verb);

// Reads inputs that are pipes or terminals of this process (/dev/stdin, or /dev/fd/63 of a shell's <(command)) to their end, and
// puts a temporary file without a name into their place. From then on their paths lead to regular files, which can be mapped
// and read twice. Standard input that was read in part begins where it stands.
// Throws UsageError if two options name standard input, or MPI has started several processes, of which one would get it; Error (io) if an input cannot be read or kept.
void keep_pipes(const std::vector<NamedFile>& inputs);

}  // namespace isonorm::tools
