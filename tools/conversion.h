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

// Converts or rotates, checks and writes, and prints what it found; gives the exit code. Throws as what it calls, and UsageError.
int run_conversion(const ConvertOptions& options);
// The same, where the options fit each other and the files; else throws UsageError.
int run_convert(const ConvertOptions& options);

// What both verbs ask of the result, and their exit codes.
void add_result_options(CLI::App& command, ConvertOptions& options);

}  // namespace isonorm::tools
