// The report of a certificate.
#pragma once

#include "lab/certificate/certificate.h"
#include "reports/result.h"

namespace isonorm::equivalence {

// "Equivalent: ..." with the figures and what is detectable, or "Different: ..." or "Undecided: ..." with the first
// thing that is not as expected. Then the claims, and a line per architecture, negative control, fault and dtype.
reports::Document document_of(const CertificateResult& r);
// The JSON of it.
const reports::Description& certificate_description();

// The claims with the measured figures and the figures that would have refuted them; and the charts, a dot per
// training.
reports::TextTable claim_table(const CertificateResult& r);
std::vector<reports::Figure> certificate_figures(const CertificateResult& r);
// "every horizon is the end of its run" or "the horizon lies before the end of gpt1 in f32 (31 of 50)".
std::string horizons_text(const CertificateResult& r);
// The short name of a certified form: "rms", "crms", "isometric". Also the class of its colour.
std::string short_name(const std::string& form);
// "6.8", "1.7e+06"; nothing for NaN.
std::string eps_text(double errors);

}  // namespace isonorm::equivalence
