// The report of grids: one document for one or several TableResults.
#pragma once

#include <span>
#include <string>

#include "equivalence/grid/grid.h"
#include "reports/result.h"

namespace isonorm::equivalence {

// "gpt", "gpt, affine norms", "gpt, tied head", "vit", "vit, made images".
std::string title_of(const TableOptions& options);

// "= 9e-16", "! 5e-02", "? 1e-01", "n/a": the observation (equivalent, different, undecided, not trained) and the
// largest relative deviation of the loss. A cell that contradicts the expectation ends with " ??".
std::string cell_text(const Cell& cell);

// A table of the measured properties of each optimizer's update. The number after "yes" or "no" is the deviation.
reports::TextTable predicates_table(const std::vector<Recipe>& columns, const std::vector<Predicates>& predicates);

// The table of variants by optimizers, and the table that describes the variants.
reports::TextTable grid_table(const TableResult& result);
reports::TextTable variants_table(const TableResult& result);

// The document of at least one grid. Its verdict is the verdict of the first grid with the worst verdict.
reports::Document document_of(std::span<const TableResult> results);
// The sentence of one grid's document, and the JSON of a document.
std::string sentence_of(const TableResult& result);
const reports::Schema<std::span<const TableResult>>& table_schema();

}  // namespace isonorm::equivalence
