// What a measurement was made with, for the reader of its report.
#pragma once

#include <string>

#include "training/records/manifest.h"

namespace isonorm::training {

// The heading "Environment" and a table of program, compiler, machine, seed and time; the data's hash where there is
// one.
std::string environment_html(const Manifest& manifest, double seconds);

}  // namespace isonorm::training
