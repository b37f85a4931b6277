#include "equivalence/table_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "equivalence/criterion.h"
#include "equivalence/printed.h"
#include "equivalence/report_page.h"
#include "equivalence/summary.h"
#include "equivalence/svg.h"

namespace isonorm::equivalence {
namespace {

using nlohmann::ordered_json;

std::string short_number(double value) {
  if (value == 0 || !std::isfinite(value)) return scientific(value);
  return printed("%.0e", value);
}

std::string setting(const TableResult& r) {
  return text("A ", r.options.model == ModelKind::gpt ? "GPT" : "ViT", " of width ", r.model.width, " and ",
              r.model.depth, " blocks, ", r.options.steps, " steps, ", r.options.seeds, " seeds, ",
              name_of(r.model.dtype));
}

std::string css_of(const Cell& cell) {
  if (!cell.as_expected) return "bad";
  return cell.observed == Expectation::same ? "same" : cell.observed == Expectation::different ? "different" : "none";
}

constexpr size_t kColumns = 11;  // side by side on a page

std::string grid_html(const TableResult& r) {
  std::string out = "<figure>";
  const size_t columns = r.options.columns.size();
  for (size_t first = 0; first < columns; first += kColumns) {
    const size_t last = std::min(columns, first + kColumns);
    out += "<div class=\"scroll\"><table class=\"grid\">\n<tr><th></th><th></th>";
    for (size_t c = first; c < last; ++c) out += text("<th>", escaped(r.options.columns[c].title), "</th>");
    out += "</tr>\n";
    for (size_t row = 0; row < r.options.rows.size(); ++row) {
      const Variant& v = r.options.rows[row];
      out += text("<tr><td>", v.alias, "</td><td>", v.name, "</td>");
      for (size_t c = first; c < last; ++c) {
        const Cell& cell = r.cell(row, c);
        const std::string tip = text("expected ", name_of(cell.expected), "; ", cell.reason);
        out += text("<td class=\"", css_of(cell), "\" title=\"", escaped(tip), "\">", cell_text(cell), "</td>");
      }
      out += "</tr>\n";
    }
    out += "</table></div>\n";
  }
  return out +
         "<figcaption>Largest relative deviation of the loss from Pre-LN's over all steps. <b>=</b>: loss, gradients "
         "and weights stay within 30 times what one-ulp controls reach, plus 64 eps, at every step and for every seed. "
         "<b>!</b>: they do not. n/a: raw weights would be needed, and are not there. A cell in red contradicts the "
         "theory.</figcaption></figure>\n";
}

std::string variants_html(const TableResult& r) {
  std::string out =
      "<h2>The variants</h2>\n<figure><div class=\"scroll\"><table "
      "class=\"words\">\n<tr><th></th><th>name</th><th>stores"
      "</th><th>maps in the forward</th><th>gradients</th><th>weights after a step</th></tr>\n";
  for (const Variant& v : r.options.rows)
    out += text("<tr><td>", v.alias, "</td><td>", v.name, "</td><td>", escaped(stores(v)), "</td><td>",
                escaped(maps_forward(v)), "</td><td>", escaped(treats_gradients(v)), "</td><td>",
                escaped(treats_weights(v)), "</td></tr>\n");
  return out + "</table></div></figure>\n";
}

}  // namespace

std::string cell_text(const Cell& cell) {
  if (cell.observed == Expectation::undefined) return "n/a";
  return text(cell.observed == Expectation::same ? "= " : "! ", short_number(cell.loss), cell.as_expected ? "" : " ??");
}

std::string table_sentence(const TableResult& r) {
  if (r.interrupted) return "Interrupted: nothing is concluded.";
  int same = 0, different = 0, undefined = 0, wrong = 0;
  double largest = 0, smallest = INFINITY;
  const Cell* first = nullptr;
  for (const Cell& cell : r.cells) {
    if (!cell.as_expected && wrong++ == 0) first = &cell;
    if (cell.observed == Expectation::undefined)
      ++undefined;
    else if (cell.observed == Expectation::same)
      ++same, largest = std::max(largest, cell.loss);
    else
      ++different, smallest = std::min(smallest, cell.loss);
  }
  if (first)
    return text("Not as theory says: ", wrong, " of ", r.cells.size(), " cells, first ", first->variant.alias, " ",
                first->variant.name, " with ", first->recipe.title, ": expected ", name_of(first->expected),
                ", observed ", name_of(first->observed), " (", first->reason, ").");
  std::string out = text("As theory says: of ", r.cells.size(), " cells ", same, " are the same");
  if (same > 0) out += text(" (loss within ", scientific(largest), ")");
  out += text(", ", different, " different");
  if (different > 0) out += text(" (by at least ", scientific(smallest), ")");
  return out + text(", ", undefined, " undefined.");
}

std::string table_markdown(const TableResult& r) {
  std::string out = "| |", rule = "|---|";
  for (const Recipe& c : r.options.columns) out += text(c.title, "|"), rule += "---|";
  out += text("\n", rule, "\n");
  for (size_t row = 0; row < r.options.rows.size(); ++row) {
    out += text("| ", r.options.rows[row].alias, " |");
    for (size_t c = 0; c < r.options.columns.size(); ++c) out += text(cell_text(r.cell(row, c)), "|");
    out += "\n";
  }
  out += text("\n", setting(r), ".\n\n| | name | stores | maps in the forward | gradients | weights after a step |\n",
              "|---|---|---|---|---|---|\n");
  for (const Variant& v : r.options.rows)
    out += text("| ", v.alias, " | `", v.name, "` | ", stores(v), " | ", maps_forward(v), " | ", treats_gradients(v),
                " | ", treats_weights(v), " |\n");
  return out;
}

std::string table_json(const TableResult& r) {
  ordered_json list = ordered_json::array();
  for (const Cell& cell : r.cells) {
    const auto number = [&](double value) {
      return cell.observed == Expectation::undefined || !std::isfinite(value) ? ordered_json() : ordered_json(value);
    };
    list.push_back({{"variant", cell.variant.name},
                    {"alias", cell.variant.alias},
                    {"optimizer", cell.recipe.name},
                    {"class", name_of(cell.recipe.update)},
                    {"expected", name_of(cell.expected)},
                    {"observed", name_of(cell.observed)},
                    {"as_expected", cell.as_expected},
                    {"deviation", number(cell.loss)},
                    {"control", number(cell.control_loss)},
                    {"gradient_deviation", number(cell.gradient)},
                    {"gradient_control", number(cell.control_gradient)},
                    {"weight_deviation", number(cell.weight)},
                    {"weight_control", number(cell.control_weight)},
                    {"reason", cell.reason}});
  }
  return list.dump(2) + "\n";
}

std::string table_html(const TableResult& r) {
  const std::string sentence = table_sentence(r);
  const size_t colon = sentence.find(": ");
  std::string body = text(
      "<h1>When are two trainings the same training?</h1>\n<p class=\"soft\">Fifteen ways to store and update a "
      "Transformer's weights, each trained beside Pre-LN with every optimizer. ",
      setting(r), ".</p>\n<div class=\"verdict ", r.as_expected ? "good" : "bad", "\"><strong>",
      escaped(sentence.substr(0, colon)), "</strong><span>", escaped(sentence.substr(colon + 2)), "</span></div>\n");
  body += grid_html(r) + variants_html(r) + environment_html(r.manifest, r.seconds);
  return report_page("isonorm: variants by optimizers", body);
}

}  // namespace isonorm::equivalence
