// What a result says, as plain data, and the three ways to show it: as text for a terminal, as one HTML file, as JSON
// for a program. An entry of `values` or a table shows up in all three, of `details` in the last two; a member, by its line in document.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "reports/figure.h"
#include "reports/text_table.h"

namespace isonorm::reports {

using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;  // the first: there is none

struct Named {
  std::string name;
  Value value = {};
};

// What a result was made with, and how to repeat it.
struct Environment {
  std::vector<Named> facts = {}, options = {};
  std::string command = {};
  double seconds = 0;
};

struct Document {
  std::string title;
  std::string about = {};           // what was done: a paragraph below the title
  Tone tone = Tone::plain;          // of the verdict; plain: undecided
  std::string verdict = {};         // "Not equivalent"; empty: nothing is judged
  std::string sentence = {};        // the reason of the verdict, with the deciding figures; with a full stop
  std::vector<Named> values = {};   // numbers that stand in no table
  std::vector<Named> details = {};  // those that the sentence says: a terminal is spared them
  std::vector<TextTable> tables = {};
  std::vector<Figure> figures = {};
  std::vector<std::string> remarks = {};  // paragraphs
  std::vector<std::string> method = {};   // how the verdict is found: paragraphs that a terminal is spared
  Environment environment = {};           // likewise
};

// "Not equivalent: ...": verdict and sentence, in lines of at most `width` (0: one line), the verdict coloured where
// `color`. Without a newline at the end. What comes from outside does not speak to the terminal (printable()), here and
// in values and remarks of to_text().
std::string closing(const Document& document, bool color = false, size_t width = 0);

// Tables but those of details, values, remarks and the closing sentence.
std::string to_text(const Document& document, bool color, size_t width = 0);

// A file that needs nothing else: no scripts, no network; readable in light, in dark and on paper.
std::string to_html(const Document& document);

// {"title", "about", "verdict" (null: none), "sentence" (as closing()), "values": {name: value} (details, too), "tables": {heading:
// [{column: cell}]}, "curves": {figure: {panel: {name: values}}} (without a panel's name where it has none), "remarks",
// "method", "environment": {...}, "options": {...}, "command", "seconds"}, indented by two, with a newline at the end.
// A cell is its number where it has one, [its number, the one beside it] where it has two, else its text; a column
// without a name is "name"; what is not finite is null.
std::string to_json(const Document& document);

}  // namespace isonorm::reports
