// What every report shares: the frame of the page and its parts.
#pragma once

#include <string>

#include "reports/svg.h"
#include "reports/text_table.h"

namespace isonorm::reports {

// A whole HTML file: style sheet, title (plain text) and body (HTML).
std::string report_page(const std::string& title, const std::string& body);

// A coloured box: a word or two, and the sentence that explains them, with a capital (plain text both). Tone::plain:
// undecided.
std::string verdict_box(Tone tone, const std::string& headline, const std::string& sentence);

// The heading "Repeat it" and the command.
std::string repeat_html(const std::string& command);

// Escaped, with the hyphen of "1.4e-13" and the spaces of "/ 1.4e-13" and "3 %" made ones that no line breaks at.
std::string unbroken(const std::string& s);

// HTML in which a long name may be broken behind each of its underscores.
std::string breakable(const std::string& html);

// Fits the vertical axis (not a log scale) and the number of steps to the chart's lines.
void fit_axis(Chart& chart);

}  // namespace isonorm::reports
