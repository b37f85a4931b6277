// Do two files compute the same function? The findings of isonorm verify, and their sentences.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "equivalence/services/named_files.h"
#include "equivalence/verify/verify.h"
#include "reports/result.h"

namespace isonorm::services {

struct VerifyOptions {
  std::string a, b, spec, data, up_to;
  Device device = kCpu;
  bool quiet = false;
  std::function<bool()> stop = {};  // called before each tensor is read; returns true to stop
};

struct Verified {
  // The findings for each stream, with its name. The stream of a file with one stream has an empty name.
  std::vector<std::pair<std::string, equivalence::Verification>> streams;
  std::string remark = {};  // for files that are equivalent: on what this verdict rests

  equivalence::Verdict verdict() const;  // the worst of the streams
  std::vector<std::string> lines(bool quiet) const;
  std::string shown(bool quiet = false) const;  // the lines, each with its end
};

// Lists the files that a verification reads.
NamedFiles files_of(const VerifyOptions& options);

// Call files_of() and check_files() first. Throws UsageError if the options do not fit the files, Interrupted if it was
// to stop, and the errors of the functions that it calls.
Verified verify(const VerifyOptions& options);

// The result for programs.
const reports::Schema<Verified>& verify_schema();

}  // namespace isonorm::services
