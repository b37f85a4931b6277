// A certificate in words: one sentence, tables, JSON and an HTML report.
#pragma once

#include "equivalence/certificate/certificate.h"
#include "reports/text_table.h"

namespace isonorm::equivalence {

// "Certified", "Not certified" or "Undecided".
const char* verdict_name(const CertificateResult& r);

// "Certified: ..." with the figures and the resolution, or "Not certified: ..." or "Undecided: ..." with the first
// thing that is not as expected.
std::string certificate_sentence(const CertificateResult& r);

// A line per architecture and dtype; per negative control and dtype; per fault and dtype; per dtype of the errors at
// random points.
reports::TextTable trajectory_table(const CertificateResult& r);
reports::TextTable negative_table(const CertificateResult& r);
reports::TextTable resolution_table(const CertificateResult& r);
reports::TextTable error_table(const CertificateResult& r);

// What is claimed, what was measured, and what would have refuted it: side by side.
reports::TextTable claim_table(const CertificateResult& r);

// "every horizon is the end of its run" or "the horizon lies before the end of gpt1 in f32 (31 of 50)".
std::string horizons_text(const CertificateResult& r);
// "6.8", "1.7e+06"; nothing for NaN.
std::string eps_text(double errors);

// The tables but the claims, for a terminal; `width` as in to_text.
std::string certificate_text(const CertificateResult& r, bool color, size_t width = 0);

// A whole page: verdict, claims, pictures, tables, criterion, command and environment.
std::string certificate_html(const CertificateResult& r);

// {"verdict" ("certified", "not certified" or "undecided"), "sentence", "manifest", "trajectories",
// "negative_controls", "resolution", "gradient_errors", "gradients", "width_2", "seconds"}, indented by two, with a
// newline at the end; what is not finite is null.
std::string certificate_json(const CertificateResult& r);

}  // namespace isonorm::equivalence
