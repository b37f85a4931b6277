// A checkpoint in other coordinates of its residual streams, verified before it is written: convert and rotate.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/system/terminal.h"
#include "equivalence/services/named_files.h"

namespace isonorm::services {

struct ConvertOptions {
  std::string in, out, from, to, spec, reference, dtype, data, fold = "all", as;
  std::string basis;  // of rotate, which has no `to`
  double eps = 0;     // 0: not asked for
  int64_t shard = 5'000'000'000;
  bool inference = false, quiet = false, unit_gains = false;
  std::function<void(const std::string&)> print = print_line;  // gets the findings, line by line
  std::function<bool()> stop = [] { return false; };           // asked between two pieces of the work
};

// The files that the conversion writes and reads. Throws UsageError if the options do not fit each other or the files.
NamedFiles files_of(const ConvertOptions& options);

// Converts or rotates a model, checks and writes it, and prints its findings. Returns false, and writes nothing, if the result
// is not verified. Call files_of() and check_files() first. Throws Interrupted if it was to stop, UsageError, and the errors
// of the functions that it calls.
bool convert(const ConvertOptions& options);

}  // namespace isonorm::services
