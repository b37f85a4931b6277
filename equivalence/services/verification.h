// Whether two files are one function: what isonorm verify finds, and what it says of that.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "equivalence/services/named_files.h"
#include "equivalence/verify/verify.h"

namespace isonorm::services {

struct VerifyOptions {
  std::string a, b, spec, data, up_to;
  Device device = kCpu;
  bool quiet = false;
  std::function<bool()> stop = {};  // asked before each tensor is read
};

struct Verified {
  // Of each stream, by name; of a file of one stream, that of an empty name.
  std::vector<std::pair<std::string, equivalence::Verification>> streams;
  std::string remark = {};  // of files that are the same: by what that is so

  equivalence::Verdict verdict() const;  // the worst of the streams
  std::vector<std::string> lines(bool quiet) const;
};

// The files that a verification reads.
NamedFiles files_of(const VerifyOptions& options);

// Call files_of() and check_files() first. Throws UsageError if the options do not fit the files, Interrupted if it was to stop,
// and the errors of the functions that it calls.
Verified verify(const VerifyOptions& options);

}  // namespace isonorm::services
