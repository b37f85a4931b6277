// Verifies that two files are the same function: the findings of isonorm verify, and their text.
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
  std::function<bool()> stop = {};  // called before each tensor is read
};

struct Verified {
  // By the name of the stream; "" if the file has one stream.
  std::vector<std::pair<std::string, equivalence::Verification>> streams;
  std::string remark = {};  // if the files are the same: what the verdict relies on

  bool same() const;
  std::vector<std::string> lines(bool quiet) const;
};

// The files that a verification reads.
NamedFiles files_of(const VerifyOptions& options);

// Call files_of() and check_files() first. Throws UsageError if the options do not fit the files, Interrupted if stop()
// returns true, and the errors of the functions that it calls.
Verified verify(const VerifyOptions& options);

}  // namespace isonorm::services
