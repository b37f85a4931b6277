// A result as plain data, and three ways to show it: text for a terminal, a single HTML file, and JSON for a program.
// Tables and values are for people; a program reads the fields of `result` (reports/result.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "reports/figure.h"
#include "reports/text_table.h"

namespace isonorm::reports {

struct Description;  // of the fields of a result (reports/result.h)
struct Named;

// A JSON value. monostate: null; Named: the members of an object, in order.
struct Value
    : std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Value>, std::vector<Named>> {
  using variant::variant;
};

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
  std::string about = {};          // a paragraph below the title: what was done
  Tone tone = Tone::plain;         // of the verdict; plain: undecided
  std::string verdict = {};        // "Different"; empty: no verdict
  std::string sentence = {};       // the reason for the verdict, with the deciding figures and a full stop
  std::vector<Named> values = {};  // numbers that are in no table
  std::vector<TextTable> tables = {};
  std::vector<Figure> figures = {};
  std::vector<std::string> remarks = {};  // paragraphs
  std::vector<std::string> method = {};   // paragraphs on how the verdict is found; not shown in a terminal
  Environment environment = {};           // not shown in a terminal
  std::vector<Named> result = {};         // for programs: the members of an object, as a Schema gives them
};

// "Different: ..." or, if the sentence begins with a capital letter, "Equivalent. ...": verdict and sentence, in lines
// of at most `width` (0: one line), without a newline at the end. `color`: colours the verdict. Text from outside
// cannot send control sequences to the terminal (printable()); the same holds for values and remarks in to_text().
std::string closing(const Document& document, bool color = false, size_t width = 0);

// Tables without `detail`, values, remarks and the closing sentence.
std::string to_text(const Document& document, bool color, size_t width = 0);

// A self-contained file: no scripts, no network. Readable in light and dark mode and on paper.
std::string to_html(const Document& document);

// The JSON of a result: its own members, then "text", the members of the environment ("command", "seconds", "options",
// "environment") and "non_finite": JSON Pointers (RFC 6901) to the numbers that are not finite, in whose place null
// stands. Indented by two, with a newline at the end. Bytes that are not UTF-8 become replacement characters.
std::string to_json(std::vector<Named> result, const std::string& text, const Environment& environment = {});
// The same for the document's result; the text is that of a terminal without colours and of any width.
std::string to_json(const Document& document);

}  // namespace isonorm::reports
