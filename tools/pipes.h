// Pipes in the place of files.
#pragma once

#include <vector>

#include "equivalence/services/named_files.h"

namespace isonorm::tools {

// Reads inputs that are pipes or terminals of this process (/dev/stdin, or /dev/fd/63 of a shell's <(command)) to their end, and
// puts a temporary file without a name into their place. From then on their paths lead to regular files, which can be mapped
// and read twice. Standard input that was read in part begins where it stands.
// Throws UsageError if two options name standard input, or if MPI has started several processes, since only one would get
// it; Error (io) if an input cannot be read or kept.
void keep_pipes(const std::vector<services::NamedFile>& inputs);

}  // namespace isonorm::tools
