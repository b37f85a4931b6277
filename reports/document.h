// A result as plain data, and three ways to show it: text for a terminal, a single HTML file, and JSON for a program.
// An entry of `values` or of a table shows up in all three, an entry of `details` in HTML and JSON. A new member of
// Document needs a line for each in document.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "reports/figure.h"
#include "reports/text_table.h"

namespace isonorm::reports {

using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;  // monostate: no value

struct Named {
  std::string name;
  Value value = {};
};

// The conditions of a result, and the command that repeats it.
struct Environment {
  std::vector<Named> facts = {}, options = {};
  std::string command = {};
  double seconds = 0;
};

struct Document {
  std::string title;
  std::string about = {};           // a paragraph below the title: what was done
  Tone tone = Tone::plain;          // of the verdict; plain: undecided
  std::string verdict = {};         // "Different"; empty: no verdict
  std::string sentence = {};        // the reason for the verdict, with the deciding figures and a full stop
  std::vector<Named> values = {};   // numbers that are in no table
  std::vector<Named> details = {};  // numbers that the sentence contains; not shown in a terminal
  std::vector<TextTable> tables = {};
  std::vector<Figure> figures = {};
  std::vector<std::string> remarks = {};  // paragraphs
  std::vector<std::string> method = {};   // paragraphs on how the verdict is found; not shown in a terminal
  Environment environment = {};           // not shown in a terminal
};

// "Different: ..." or, if the sentence begins with a capital letter, "Equivalent. ...": verdict and sentence, in lines of at most `width` (0: one line), without a newline at the end.
// `color`: colours the verdict. Text from outside cannot send control sequences to the terminal (printable()); the same
// holds for values and remarks in to_text().
std::string closing(const Document& document, bool color = false, size_t width = 0);

// Tables without `detail`, values, remarks and the closing sentence.
std::string to_text(const Document& document, bool color, size_t width = 0);

// A self-contained file: no scripts, no network. Readable in light and dark mode and on paper.
std::string to_html(const Document& document);

// {"title", "about", "verdict" (null: none), "sentence" (as closing()), "values": {name: value} (with details),
// "tables": {heading: [{column: cell}]}, "curves": {figure: {panel: {name: values}}} (without the level of panels if
// the panel has no name), "remarks", "method", "environment": {...}, "options": {...}, "command", "seconds"}, indented
// by two, with a newline at the end. A cell is its number if it has one, both (value and beside, in a list) if it has
// two, else its text. A column without a name is "name". Numbers that are not finite are null.
std::string to_json(const Document& document);

}  // namespace isonorm::reports
