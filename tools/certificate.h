// isonorm prove --certificate.
#pragma once

#include "equivalence/certificate/certificate.h"
#include "tools/options.h"

namespace isonorm::tools {

// Runs it, shows where it is, prints and writes the result; returns the exit code.
int run_certificate(const equivalence::CertificateOptions& options, const OutputOptions& output);

// That of its verdict: 0 where it was certified, 1 where not, 5 where it is undecided.
inline int exit_code(const equivalence::CertificateResult& result) { return exit_code(result.verdict); }

}  // namespace isonorm::tools
