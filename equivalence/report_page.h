// What every report shares: the frame of the page, and what a measurement was made with.
#pragma once

#include <string>

#include "equivalence/manifest.h"

namespace isonorm::equivalence {

// A whole HTML file: style sheet, title (plain text) and body (HTML).
std::string report_page(const std::string& title, const std::string& body);

// The heading "Environment" and a table of program, compiler, machine, seed and time.
std::string environment_html(const Manifest& manifest, double seconds);

}  // namespace isonorm::equivalence
