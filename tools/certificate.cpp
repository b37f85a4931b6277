#include "tools/certificate.h"

#include <cstdio>

#include "equivalence/certificate/certificate_text.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/proof_text.h"
#include "tools/terminal.h"

namespace isonorm::tools {

using namespace equivalence;

int run_certificate(const CertificateOptions& options, const OutputOptions& output) {
  check_output_options(output, {});
  catch_interrupt();
  StatusLine status(stderr, output.quiet);
  const CertificateResult r = certify(options, [&](const CertificateProgress& p) {
    if (status.due(p.step, p.steps))
      status.update(text("certificate ", 100 * static_cast<int64_t>(p.step) / p.steps, " %  ",
                         duration_text(p.seconds * (p.steps - p.step) / p.step), " left  ", p.what));
    return !interrupted();
  });
  status.clear();
  if (r.interrupted) {
    std::fprintf(stderr, "isonorm prove: interrupted\n");
    return kInterrupted;
  }
  show(document_of(r), output.quiet, output.report, output.json);
  return exit_code(r);
}

}  // namespace isonorm::tools
