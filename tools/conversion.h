// What convert and rotate share: a checkpoint in other coordinates of its residual streams, verified before it is written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/system/terminal.h"

namespace CLI {
class App;
}

namespace isonorm::tools {

struct ConvertOptions {
  std::string in, out, from, to, spec, reference, dtype, data, fold = "all", as;
  std::string basis;  // of rotate, which has no `to`
  double eps = 0;     // 0: not asked for
  int64_t shard = 5'000'000'000;
  bool inference = false, quiet = false, unit_gains = false;
  std::function<void(const std::string&)> print = print_line;  // gets what was found, line by line
  std::function<bool()> stop = [] { return false; };           // asked between two pieces of the work
};

// Converts or rotates a model, checks and writes it, and prints its findings. Returns the exit code. Throws UsageError, and the
// errors of the functions that it calls.
int run_conversion(const ConvertOptions& options);
// The same, but first throws UsageError if the options do not fit each other or the files.
int run_convert(const ConvertOptions& options);

// Adds the options for the result that both verbs have, and their exit codes.
void add_result_options(CLI::App& command, ConvertOptions& options);

}  // namespace isonorm::tools
