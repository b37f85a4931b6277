// isonorm prove --certificate.
#pragma once

#include "equivalence/certificate/certificate.h"
#include "tools/options.h"

namespace isonorm::tools {

// Runs it, shows where it is, prints and writes the result; returns the exit code.
int run_certificate(const equivalence::CertificateOptions& options, const OutputOptions& output);

// 0 where it was certified, else 1.
inline int exit_code(const equivalence::CertificateResult& result) { return result.certified ? kOk : kNotEquivalent; }

}  // namespace isonorm::tools
