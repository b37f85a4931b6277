#include "equivalence/text/grid_text.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "io/json_text.h"
#include "reports/page.h"
#include "reports/svg.h"
#include "streams/stream.h"
#include "training/from_outside.h"
#include "training/records/manifest_html.h"

namespace isonorm::equivalence {
namespace {

std::string short_number(double value) {
  if (value == 0 || !std::isfinite(value)) return scientific(value);
  return printed("%.0e", value);
}

// Empty for pre_ln.
std::string connections_text(const nn::Arrangement& connection) {
  return connection == nn::kPreLn ? "" : text(" with connections ", training::name_and_origin(connection));
}

std::string setting(const TableResult& r) {
  return text("A ", r.options.model->title, training::listed(*r.options.model) ? "" : training::kFromOutside,
              connections_text(r.options.connection), " of width ", r.model.width, " and ", r.model.depth, " blocks",
              r.options.affine ? " with affine norms" : "", r.options.tied ? " with a tied head" : "",
              r.options.made ? " on images made from the seed" : "", ", ", plural(r.options.steps, "step"), ", ",
              plural(r.options.seeds, "seed"), ", ", name_of(r.model.dtype));
}

std::string css_of(const Cell& cell) {
  if (cell.outcome == Outcome::contradicts) return "bad";
  switch (cell.observed) {
    case Expectation::same:
      return "same";
    case Expectation::different:
      return "";
    case Expectation::undecided:
      return "undecided";
    case Expectation::undefined:
      break;
  }
  return "none";
}

reports::Tone tone_of(Outcome a) {
  return a == Outcome::agrees        ? reports::Tone::good
         : a == Outcome::contradicts ? reports::Tone::bad
                                     : reports::Tone::plain;
}

constexpr size_t kColumns = 9;  // side by side on a page

std::string grid_html(const TableResult& r) {
  std::string out = "<figure>";
  const size_t columns = r.options.columns.size();
  for (size_t first = 0; first < columns; first += kColumns) {
    const size_t last = std::min(columns, first + kColumns);
    out += "<table class=\"cards wide grid\">\n<thead><tr><th></th>";
    for (size_t c = first; c < last; ++c)
      out += text("<th>", reports::escaped(title_of(r.options.columns[c])), "</th>");
    out += "</tr></thead>\n";
    for (size_t row = 0; row < r.options.rows.size(); ++row) {
      const Variant& v = r.options.rows[row];
      out += text("<tr><td>", v.alias, " ", reports::breakable(v.name), "</td>");
      for (size_t c = first; c < last; ++c) {
        const Cell& cell = r.cell(row, c);
        const std::string tip = text("expected ", name_of(cell.expected), ": ", cell.because, "; ", cell.reason);
        out += text(reports::cell_html(title_of(cell.recipe), css_of(cell)), "<span title=\"", reports::escaped(tip),
                    "\">", reports::unbroken(cell_text(cell)), "</span></td>");
      }
      out += "</tr>\n";
    }
    out += "</table>\n";
  }
  return out +
         "<figcaption>Largest relative deviation of the loss from Pre-LN's over all steps. <b>=</b>: loss, gradients "
         "and weights stay within 30 times what one-ulp controls reach, plus 64 eps, at every step and for every seed. "
         "<b>!</b>: they do not. <b>?</b>: rounding alone explains as much as a wrong training would show, or too "
         "little was seen. n/a: raw weights would be needed and are not there, or the architecture has no such model. "
         "A cell in red contradicts the theory; what is expected follows from the table of what updates depend "
         "on.</figcaption></figure>\n";
}

reports::TextTable variants_table(const TableResult& r) {
  reports::TextTable table{
      .heading = "The variants",
      .columns = {"", "name", "stores", "maps in the forward", "gradients", "weights after a step"}};
  for (const Variant& v : r.options.rows)
    table.rows.push_back(
        {{v.alias}, {v.name}, {stores(v)}, {maps_forward(v)}, {treats_gradients(v)}, {treats_weights(v)}});
  return table;
}

}  // namespace

std::string title_of(const TableOptions& o) {
  return text(training::name_and_origin(*o.model), connections_text(o.connection), o.affine ? ", affine norms" : "",
              o.tied ? ", tied head" : "", o.made ? ", made images" : "");
}

std::string cell_text(const Cell& cell) {
  if (cell.observed == Expectation::undefined) return "n/a";
  const char* sign = cell.observed == Expectation::same ? "= " : cell.observed == Expectation::different ? "! " : "? ";
  return text(sign, short_number(cell.loss), cell.outcome == Outcome::contradicts ? " ??" : "");
}

std::string table_sentence(const TableResult& r) {
  if (r.interrupted) return "Interrupted: nothing is concluded.";
  int same = 0, different = 0, undefined = 0, wrong = 0;
  double largest = 0, smallest = INFINITY;
  const Cell* first = nullptr;
  for (const Cell& cell : r.cells) {
    if (!cell.as_expected() && cell.outcome == r.outcome && wrong++ == 0) first = &cell;
    if (cell.observed == Expectation::undefined) ++undefined;
    if (cell.observed == Expectation::same) ++same, largest = larger(largest, cell.loss);
    if (cell.observed == Expectation::different) ++different, smallest = std::min(smallest, cell.loss);
  }
  if (first) {
    const bool own = from_outside(r.model) || !listed(*first->recipe.optimizer);
    return text(r.outcome == Outcome::contradicts
                    ? own ? "Not as derived from what was measured: " : "Not as theory says: "
                    : "Undecided: ",
                wrong, " of ", r.cells.size(), " cells, first ", first->variant.alias, " ", first->variant.name,
                " with ", title_of(first->recipe), ": expected ", name_of(first->expected), " (", first->because,
                "), observed ", name_of(first->observed), " (", first->reason, ").");
  }
  std::string out = text("As theory says: of ", r.cells.size(), " cells ", same, " are the same");
  if (same > 0) out += text(" (loss within ", scientific(largest), ")");
  out += text(", ", different, " different");
  if (different > 0) out += text(" (by at least ", scientific(smallest), ")");
  return out + text(", ", undefined, " undefined.");
}

std::vector<std::string> table_notes(const TableResult& r) {
  std::vector<std::string> notes;
  for (const Recipe& recipe : r.options.columns)
    if (const std::string note = recipe.optimizer->note(r.model.dtype); !note.empty()) notes.push_back(text(note, "."));
  return notes;
}

reports::TextTable predicates_table(const std::vector<Recipe>& columns, const std::vector<Predicates>& predicates) {
  reports::TextTable table{.heading = "What updates depend on", .columns = {"U"}};
  for (int p = 0; p < kProperties; ++p) {
    const Property property = static_cast<Property>(p);
    table.columns.push_back(name_of(property));
    table.caption += text(p > 0 ? "; " : "", name_of(property), ": ", formula_of(property));
  }
  table.caption +=
      ". Measured on the optimizer alone: U(G, w) are the weights after four steps from random weights w under random "
      "gradients G without means; the number is the deviation relative to the way of the tensor.";
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<reports::TextCell>& row = table.rows.emplace_back();
    row.push_back({title_of(columns[c])});
    for (const Measured& m : predicates[c].measured)
      row.push_back({text(m.holds ? "yes " : "no ", short_number(m.deviation)), reports::Tone::plain, m.deviation});
  }
  return table;
}

std::string table_markdown(const TableResult& r) {
  std::string out = "| |", rule = "|---|";
  for (const Recipe& c : r.options.columns) out += text(title_of(c), "|"), rule += "---|";
  out += text("\n", rule, "\n");
  for (size_t row = 0; row < r.options.rows.size(); ++row) {
    out += text("| ", r.options.rows[row].alias, " |");
    for (size_t c = 0; c < r.options.columns.size(); ++c) out += text(cell_text(r.cell(row, c)), "|");
    out += "\n";
  }
  out += text("\n", setting(r), ".");
  for (const std::string& note : table_notes(r)) out += text(" ", note);
  out += text("\n\n| | name | stores | maps in the forward | gradients | weights after a step |\n",
              "|---|---|---|---|---|---|\n");
  for (const Variant& v : r.options.rows)
    out += text("| ", v.alias, " | `", v.name, "` | ", stores(v), " | ", maps_forward(v), " | ", treats_gradients(v),
                " | ", treats_weights(v), " |\n");
  return out;
}

std::string table_json(std::span<const TableResult> results) {
  json list = json::array();
  const auto finite = [](double value) { return std::isfinite(value) ? json(value) : json(); };
  for (const TableResult& r : results) {
    std::vector<json> predicates;
    for (const Predicates& p : r.predicates) {
      json& object = predicates.emplace_back(json::object());
      for (int i = 0; i < kProperties; ++i) {
        const Measured& m = p.at(static_cast<Property>(i));
        object[name_of(static_cast<Property>(i))] = {
            {"holds", m.holds}, {"deviation", finite(m.deviation)}, {"tolerance", finite(m.tolerance)}};
      }
    }
    json another = json::array();
    for (streams::Form form : streams::kForms)
      if (r.visible.another_function[static_cast<size_t>(form)]) another.push_back(name_of(form));
    const json visible = {{"writers_mean", r.visible.writers_mean},
                          {"readers_mean", r.visible.readers_mean},
                          {"gradient_mean", r.visible.gradient_mean},
                          {"another_function", another}};
    for (size_t i = 0; i < r.cells.size(); ++i) {
      const Cell& cell = r.cells[i];
      const auto number = [&](double value) {
        return cell.observed == Expectation::undefined ? json() : finite(value);
      };
      list.push_back({{"model", title_of(r.options)},
                      {"variant", cell.variant.name},
                      {"alias", cell.variant.alias},
                      {"optimizer", cell.recipe.name},
                      {"optimizer_title", title_of(cell.recipe)},
                      {"predicates", predicates[i % predicates.size()]},
                      {"visible", visible},
                      {"expected", name_of(cell.expected)},
                      {"because", cell.because},
                      {"observed", name_of(cell.observed)},
                      {"as_expected", cell.as_expected()},
                      {"deviation", number(cell.loss)},
                      {"control", number(cell.control_loss)},
                      {"gradient_deviation", number(cell.gradient)},
                      {"gradient_control", number(cell.control_gradient)},
                      {"weight_deviation", number(cell.weight)},
                      {"weight_control", number(cell.control_weight)},
                      {"reason", cell.reason},
                      {"note", cell.recipe.optimizer->note(r.model.dtype)}});
    }
  }
  return dump(list, 2) + "\n";
}

std::string table_html(std::span<const TableResult> results) {
  std::string body =
      "<h1>When are two trainings the same training?</h1>\n<p class=\"soft\">Ways to store and update a Transformer's "
      "weights, each trained beside Pre-LN with every optimizer.</p>\n";
  double seconds = 0;
  for (const TableResult& r : results) {
    const std::string sentence = table_sentence(r);
    const size_t colon = sentence.find(": ");
    if (results.size() > 1) body += text("<h2>", reports::escaped(title_of(r.options)), "</h2>\n");
    body += text("<p class=\"soft\">", reports::escaped(setting(r)), ".");
    for (const std::string& note : table_notes(r)) body += text(" ", reports::unbroken(note));
    body += text("</p>\n", verdict_box(tone_of(r.outcome), sentence.substr(0, colon), sentence.substr(colon + 2)),
                 grid_html(r), to_html(predicates_table(r.options.columns, r.predicates)));
    seconds += r.seconds;
  }
  body += to_html(variants_table(results[0])) + environment_html(results[0].manifest, seconds);
  return reports::report_page("isonorm: variants by optimizers", body);
}

}  // namespace isonorm::equivalence
