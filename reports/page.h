// What parts of a page share.
#pragma once

#include <string>

#include "reports/svg.h"

namespace isonorm::reports {

// Escaped, with the hyphen of "1.4e-13" and the spaces of "/ 1.4e-13" and "3 %" made ones that no line breaks at.
std::string unbroken(const std::string& s);

// HTML in which a long name may be broken behind each of its underscores.
std::string breakable(const std::string& html);

// Fits the vertical axis (not a log scale) and the number of steps to the chart's lines.
void fit_axis(Chart& chart);

}  // namespace isonorm::reports
