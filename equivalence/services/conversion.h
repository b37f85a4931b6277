// Conversion of a checkpoint to other coordinates of its residual streams, verified before the result is written: the
// work of isonorm convert and isonorm rotate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/system/terminal.h"
#include "equivalence/judge/pairs.h"
#include "equivalence/services/named_files.h"
#include "reports/result.h"

namespace isonorm::services {

struct ConvertOptions {
  std::string in, out, from, to, spec, reference, dtype, data, fold = "all", as;
  std::string basis;  // for rotate, which has no `to`
  double eps = 0;     // expected eps of the norms; 0: not checked
  int64_t shard = 5'000'000'000;
  bool inference = false, quiet = false, unit_gains = false;
  std::function<void(const std::string&)> print = print_line;  // receives the findings, line by line
  std::function<bool()> stop = [] { return false; };           // called between pieces of the work
};

// Lists the files that the conversion writes and reads. Throws UsageError if the options contradict each other or the
// files.
NamedFiles files_of(const ConvertOptions& options);

struct Converted {
  // A comparison of the result with the original, or of the description with a reference.
  struct Check {
    std::string what;
    bool equivalent;
    std::optional<double> deviation = {}, bound = {};  // relative deviations; what a larger one than `bound` would show
  };

  bool written = false;  // and verified
  std::string file, form, text;
  std::optional<size_t> tensors = {};
  std::vector<Check> checks = {};
  std::optional<equivalence::EntryPlace> first_difference = {};
  std::string likely_cause = {};          // a wrong description, by the reference, or too coarse a dtype
  std::optional<double> detectable = {};  // a larger deviation of any compared output is detected
};

// Converts or rotates a model, checks and writes it, and prints its findings. Writes nothing if the result is not
// verified. Call files_of() and check_files() first. Throws Interrupted if it was to stop, UsageError, and the errors
// of the functions that it calls.
Converted convert(const ConvertOptions& options);

// The results of the two commands for programs.
const reports::Schema<Converted>& convert_schema();
const reports::Schema<Converted>& rotate_schema();

}  // namespace isonorm::services
