// The result of grids for programs.
#include <algorithm>

#include "equivalence/judge/result_fields.h"
#include "equivalence/text/grid_text.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

struct GridCell {
  std::string grid;
  const Cell& cell;
};

std::vector<GridCell> grid_cells(std::span<const TableResult> grids) {
  std::vector<GridCell> all;
  for (const TableResult& grid : grids)
    for (const Cell& cell : grid.cells) all.push_back({title_of(grid.options), cell});
  return all;
}

reports::Fields<GridCell> cell_fields() {
  const auto verdict = [](MaybeVerdict v) { return v ? std::optional(name_of(*v)) : std::nullopt; };
  const auto if_trained = [](Magnitudes Cell::*member) {
    return [member](const GridCell& c) { return c.cell.observed ? std::optional(c.cell.*member) : std::nullopt; };
  };
  return reports::Fields<GridCell>()
      .add("grid", &GridCell::grid, "name of its grid")
      .add(
          "variant", [](const GridCell& c) { return c.cell.variant.name; }, "the way to store weights")
      .add(
          "alias", [](const GridCell& c) { return c.cell.variant.alias; }, "its short name, `a1` to `d2`")
      .add(
          "optimizer", [](const GridCell& c) { return title_of(c.cell.recipe); }, "the column")
      .add(
          "expected", [verdict](const GridCell& c) { return verdict(c.cell.expected); },
          "`equivalent` or `different`, by theory; null: there is no such training")
      .add(
          "because", [](const GridCell& c) { return c.cell.because; }, "the property that the expectation follows from")
      .add(
          "observed", [verdict](const GridCell& c) { return verdict(c.cell.observed); },
          "`equivalent`, `different` or `undecided`; null: not trained")
      .add(
          "as_expected", [](const GridCell& c) { return c.cell.as_expected(); }, "observed as theory says")
      .add(
          "reason", [](const GridCell& c) { return c.cell.reason; }, "why this was observed")
      .add("deviation", if_trained(&Cell::deviation),
           "largest relative deviation from Pre-LN's training; null: not trained", magnitude_fields())
      .add("control", if_trained(&Cell::control), "the same of the farthest control", magnitude_fields());
}

reports::Fields<TableResult> grid_fields() {
  return reports::Fields<TableResult>()
      .add(
          "name", [](const TableResult& r) { return title_of(r.options); }, "model, norms and head")
      .add(
          "verdict", [](const TableResult& r) { return name_of(r.verdict); },
          "`equivalent`: every cell is as theory says")
      .add(
          "steps", [](const TableResult& r) { return r.options.steps; }, "of each training")
      .add(
          "seeds", [](const TableResult& r) { return r.options.seeds; }, "trainings of each cell")
      .add(
          "width", [](const TableResult& r) { return r.model.model.transformer().width; }, "of the residual stream")
      .add(
          "depth", [](const TableResult& r) { return r.model.model.transformer().depth; }, "Transformer blocks")
      .add(
          "writers_mean", [](const TableResult& r) { return r.visible.writers_mean; },
          "the function changes if writers lose their mean")
      .add(
          "readers_mean", [](const TableResult& r) { return r.visible.readers_mean; },
          "the function changes if readers lose their mean")
      .add(
          "gradient_mean", [](const TableResult& r) { return r.visible.gradient_mean; },
          "gradients of writers have a mean")
      .add(
          "other_functions",
          [](const TableResult& r) {
            std::vector<std::string> forms;
            for (streams::Form form : r.visible.another_function) forms.push_back(name_of(form));
            return forms;
          },
          "forms that make the model another function");
}

const TableResult& worst_of(std::span<const TableResult> grids) {
  return *std::ranges::max_element(grids, {}, &TableResult::verdict);
}

}  // namespace

const reports::Schema<std::span<const TableResult>>& table_schema() {
  using Grids = std::span<const TableResult>;
  static const reports::Schema<Grids> schema{
      "table",
      "Ways to store weights by optimizers: which train as Pre-LN does, by theory and as `isonorm table` measured.",
      reports::Fields<Grids>()
          .add(
              "verdict", [](Grids grids) { return name_of(worst_of(grids).verdict); },
              "`equivalent`: every cell is as theory says; `different`: one is not; `undecided`")
          .add(
              "sentence", [](Grids grids) { return sentence_of(worst_of(grids)); },
              "the counts, or the first cell that is not as theory says")
          .add(
              "grids", [](Grids grids) { return std::vector<TableResult>(grids.begin(), grids.end()); },
              "one for each model", grid_fields())
          .add("cells", grid_cells, "of all grids, row by row", cell_fields())};
  return schema;
}

}  // namespace isonorm::equivalence
