#include "reports/result.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace isonorm::reports {
namespace {

// Whole numbers are integers, because counts are cells, too.
Value number(double x) {
  return x == std::trunc(x) && std::abs(x) < 0x1p53 ? Value(static_cast<int64_t>(x)) : Value(x);
}

bool has_two_numbers(const TextTable& table, size_t column) {
  return std::ranges::any_of(table.rows, [column](const auto& row) { return !row.empty() && row[column].beside; });
}

// "loss\n/ control" as "loss" and "control", if the column has two numbers.
std::vector<std::string> column_names(const TextTable& table) {
  std::vector<std::string> names;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    std::string name = table.columns[c];
    std::ranges::replace(name, '\n', ' ');
    const size_t slash = name.find(" / ");
    const bool two = has_two_numbers(table, c);
    names.push_back(two && slash != name.npos ? name.substr(0, slash) : name);
    if (two) names.push_back(slash != name.npos ? name.substr(slash + 3) : "");
  }
  return names;
}

std::vector<std::vector<Value>> rows_of(const TextTable& table) {
  std::vector<std::vector<Value>> rows;
  for (const std::vector<TextCell>& row : table.rows) {
    if (row.empty()) continue;
    std::vector<Value>& values = rows.emplace_back();
    for (size_t c = 0; c < row.size(); ++c) {
      values.push_back(row[c].value ? number(*row[c].value) : row[c].text.empty() ? Value() : Value(row[c].text));
      if (has_two_numbers(table, c)) values.push_back(row[c].beside ? number(*row[c].beside) : Value());
    }
  }
  return rows;
}

struct Curve {
  std::string panel, name;
  std::vector<std::optional<double>> values;
};

std::vector<std::optional<double>> finite(const std::vector<double>& values) {
  std::vector<std::optional<double>> all;
  for (double v : values) all.push_back(std::isfinite(v) ? std::optional(v) : std::nullopt);
  return all;
}

std::vector<Curve> curves_of(const Figure& figure) {
  std::vector<Curve> curves;
  for (const Panel& panel : figure.panels)
    if (const Chart* chart = std::get_if<Chart>(&panel.drawing)) {
      for (const ChartBand& band : chart->bands) curves.push_back({panel.heading, band.name, finite(band.high)});
      for (const ChartLine& line : chart->lines) curves.push_back({panel.heading, line.name, finite(line.values)});
    }
  return curves;
}

// The head of docs/results.md.
constexpr const char* kPage = R"(# Results for programs

The files of `--json FILE`, verb by verb. `isonorm man --results` prints this page from the descriptions in the code; a test fails if the page is not current.

Every result is one JSON object. `schema` is its name and version, such as `isonorm.prove/1`. If a number is not finite, null stands in its place, and `non_finite` has its JSON Pointer (RFC 6901), such as `/runs/2/deviation/loss`. Any other null means that there is no value. A *value* is a string, a number, a boolean or null. Every result ends with these fields:

| field | kind | meaning |
|---|---|---|
| `text` | string | the output of the verb without `--quiet` |
| `command` | string | the command that repeats the result; empty: unknown |
| `seconds` | number | how long it took |
| `options` | object | the options of a training with their values |
| `environment` | object | version, compiler, CPU, kernels, BLAS, threads, dtype, seed and checksums that a training depends on |
| `non_finite` | list of strings | places of numbers that are not finite |

)";

// Adds one line for each field. The fields of an object follow it, with its name: `runs[].deviation.loss`.
void add_rows(std::string& page, const std::vector<FieldDescription>& fields, const std::string& before) {
  for (const FieldDescription& f : fields) {
    const std::string name = before + f.name;
    page += text("| `", name, "` | ", f.kind, " | ");
    for (const char c : f.meaning) page += c == '|' ? std::string("\\|") : std::string(1, c);  // else a new column
    page += " |\n";
    add_rows(page, f.members, name + (f.kind.starts_with("list") ? "[]." : "."));
  }
}

}  // namespace

Fields<TextTable> table_fields() {
  return Fields<TextTable>()
      .add("heading", &TextTable::heading, "the subject of the table")
      .add("columns", column_names, "names of the columns")
      .add("rows", rows_of, "a list of cells for each row; null: an empty cell");
}

Fields<Figure> figure_fields() {
  return Fields<Figure>()
      .add("name", &Figure::name, "name of the figure, and of its file with --svg")
      .add("curves", curves_of, "the curves of its charts",
           Fields<Curve>()
               .add("panel", &Curve::panel, "heading of the chart")
               .add("name", &Curve::name, "the quantity of the curve")
               .add("values", &Curve::values, "a number for each point; null: none there"));
}

std::string to_markdown(const std::vector<const Description*>& results) {
  std::string page = kPage;
  for (const Description* result : results) {
    page += text("## ", result->name, "\n\n", result->meaning, "\n\n| field | kind | meaning |\n|---|---|---|\n");
    add_rows(page, result->fields, "");
    page += "\n";
  }
  return page;
}

}  // namespace isonorm::reports
