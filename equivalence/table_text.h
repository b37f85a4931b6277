// The grid of a TableResult in words: one sentence, Markdown, JSON and an HTML report.
#pragma once

#include <string>

#include "equivalence/table.h"

namespace isonorm::equivalence {

// "= 9e-16", "! 5e-02", "n/a": what was observed and the largest relative deviation of the loss. A cell against the
// expectation ends with " ??".
std::string cell_text(const Cell& cell);

// "As theory says: ..." with the counts and figures, or "Not as theory says: ..." with the first cell that is not.
std::string table_sentence(const TableResult& result);

// A table of variants by optimizers, after it what the variants are.
std::string table_markdown(const TableResult& result);

// A list of objects {"variant", "alias", "optimizer", "class", "expected", "observed" ("same", "different", "n/a"),
// "as_expected", "deviation", "control" (of the loss), "gradient_deviation", "gradient_control", "weight_deviation",
// "weight_control", "reason"}, row by row; numbers are null where nothing was measured.
std::string table_json(const TableResult& result);

std::string table_html(const TableResult& result);

}  // namespace isonorm::equivalence
