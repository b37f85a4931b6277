#include "tests/support/ops_docs.h"

#include <algorithm>

#include "tests/support/checks.h"

namespace isonorm::test {
namespace {

// A bar would end the cell of a table.
std::string cell(const std::string& s) {
  std::string out;
  for (char c : s) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string dtypes_of(const OpCase& op) {
  if (op.dtypes.size() == 1) return "by option";
  std::string s;
  for (DType d : {DType::f32, DType::f64, DType::bf16})
    if (std::count(op.dtypes.begin(), op.dtypes.end(), d)) s += text(s.empty() ? "" : " ", d);
  bool index = false, mask = false;
  for (const Sample& sample : op.samples)
    if (sample.inputs.size() > 0) {
      index |= sample.inputs[0].kind == Kind::index;
      mask |= sample.inputs[0].kind == Kind::mask;
    }
  return s + (index ? " i64" : "") + (mask ? " u8" : "");
}

}  // namespace

std::string ops_docs() {
  std::string s =
      "# Ops\n\n"
      "Printed by `ops_docs` from the rows in `tests/op_cases`; a test fails where this file is not current. "
      "Parameters without a\n"
      "type are tensors. A Scalar is a number; an integer keeps its value (`core/dtype.h`). What each function "
      "throws, and where its formula is from, stands at its declaration in "
      "`autograd/ops` and\n"
      "`autograd/fused`. Every op is compared with naive double-precision code in all dtypes and layouts, and, where "
      "it has a gradient,\n"
      "with finite differences; where a gradient has one itself (`grad()` with `create_graph`), that one, too: the "
      "column "
      "\"second\". Where it says no, `create_graph` throws.\nA fused op is its composition while a `UseReference` "
      "lives, "
      "and has a second derivative where that one has.\n";
  std::string group;
  for (const OpCase& op : op_cases()) {
    if (op.group != group) {
      group = op.group;
      s += "\n## " + group + "\n\n| function | value | gradient | second | floating dtypes |\n|---|---|---|---|---|\n";
    }
    s += text("| `", cell(op.signature), "` | ", cell(op.formula), " | ", op.differentiable ? "yes" : "no", " | ",
              has_second_gradient(op) ? "yes" : "no", " | ", dtypes_of(op), " |\n");
  }
  return s;
}

}  // namespace isonorm::test
