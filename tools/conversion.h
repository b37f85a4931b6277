// What isonorm convert does with the words that it was given.
#pragma once

#include <cstdint>
#include <string>

namespace isonorm::tools {

struct ConvertOptions {
  std::string in, out, from, to, spec, reference, dtype, data, fold = "all", as;
  double eps = 0;  // 0: not asked for
  int64_t shard = 5'000'000'000;
  bool inference = false, quiet = false, unit_gains = false;
};

// Converts, checks and writes, and prints what it found; gives the exit code. Throws as what it calls, and UsageError.
int run_conversion(const ConvertOptions& options);

}  // namespace isonorm::tools
