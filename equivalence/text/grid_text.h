// The grids of TableResults in words: one sentence each, Markdown, and together as JSON and an HTML report.
#pragma once

#include <span>
#include <string>

#include "equivalence/grid/grid.h"
#include "reports/text_table.h"

namespace isonorm::equivalence {

// "gpt", "gpt, affine norms", "gpt, tied head", "vit", "vit, made images".
std::string title_of(const TableOptions& options);

// "= 9e-16", "! 5e-02", "? 1e-01", "n/a": what was observed (same, different, undecided, not trained) and the largest
// relative deviation of the loss. A cell that contradicts the expectation ends with " ??".
std::string cell_text(const Cell& cell);

// "As theory says: ...", "Undecided: ..." or "Not as theory says: ...", with the counts and figures, or with the first
// cell that is not as expected.
std::string table_sentence(const TableResult& result);

// What is not as a reader would assume, a sentence each (OptimizerRow::note).
std::vector<std::string> table_notes(const TableResult& result);

// What each optimizer's update was measured to depend on: the number beside "yes" or "no" is the deviation.
reports::TextTable predicates_table(const std::vector<Recipe>& columns, const std::vector<Predicates>& predicates);

// A table of variants by optimizers, after it what the variants are.
std::string table_markdown(const TableResult& result);

// A list of objects {"model" (title_of), "variant", "alias", "optimizer", "predicates" ({"linear": {"holds",
// "deviation", "tolerance"}, ...} of the optimizer), "expected", "because", "observed" ("same", "different",
// "undecided", "n/a"), "as_expected", "deviation", "control" (of the loss), "gradient_deviation", "gradient_control",
// "weight_deviation", "weight_control", "reason", "note"}, grid by grid and row by row; numbers are null where nothing
// was measured or they are not finite.
std::string table_json(std::span<const TableResult> results);

std::string table_html(std::span<const TableResult> results);

}  // namespace isonorm::equivalence
