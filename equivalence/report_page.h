// What every report shares: the frame of the page, and what a measurement was made with.
#pragma once

#include <string>

#include "equivalence/manifest.h"
#include "equivalence/svg.h"

namespace isonorm::equivalence {

// A whole HTML file: style sheet, title (plain text) and body (HTML).
std::string report_page(const std::string& title, const std::string& body);

// The heading "Environment" and a table of program, compiler, machine, seed and time.
std::string environment_html(const Manifest& manifest, double seconds);

// The heading "Repeat it" and the command.
std::string repeat_html(const Manifest& manifest);

// One entry of a <ul class="legend">: how the line or band of that class looks, and what it is.
std::string legend_item(const std::string& css, const std::string& name);

// Fits the vertical axis (not a log scale) and the number of steps to the chart's lines.
void fit_loss_axis(Chart& chart);

}  // namespace isonorm::equivalence
