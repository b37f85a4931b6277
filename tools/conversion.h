// What convert and rotate share: a checkpoint in other coordinates of its residual streams, verified before it is written.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor_map.h"
#include "streams/placement.h"
#include "tools/verb.h"

namespace isonorm::tools {

struct ConvertOptions {
  std::string in, out, from, to, spec, reference, dtype, data, fold = "all", as;
  std::string basis;  // of rotate, which has no `to`
  double eps = 0;     // 0: not asked for
  int64_t shard = 5'000'000'000;
  bool inference = false, quiet = false, unit_gains = false;
};

// Converts or rotates, checks and writes, and prints what it found; gives the exit code. Throws as what it calls, and UsageError.
int run_conversion(const ConvertOptions& options);
// The same, where the options fit each other and the files; else throws UsageError.
int run_convert(const ConvertOptions& options);

// What both verbs ask of the result, and their exit codes.
void add_result_options(CLI::App& command, ConvertOptions& options);

// The file that --basis names; empty where it names a kind.
std::string basis_file(const std::string& basis);
// What a rotation makes of a form: rows that were zero-mean have a mean then.
streams::Form rotated_form(streams::Form form);
// Gives the layout that form, and the rotation of a basis "hadamard:SEED", "haar:SEED" or a file (streams/rotation.h). Throws as
// check_rotatable() and check_layout(), and UsageError where the seed is none.
void rotate(streams::Placement& layout, const TensorMap& outline, const std::string& basis);

}  // namespace isonorm::tools
