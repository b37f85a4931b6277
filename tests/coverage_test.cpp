// The table of ops is complete: every public function has its row, every row enough distinct samples, and docs/ops.md
// is what it prints.
#include <algorithm>
#include <map>
#include <set>

#include "tests/op_cases/groups.h"
#include "tests/support/catch.h"
#include "tests/support/declarations.h"
#include "tests/support/ops_docs.h"
#include "tests/support/read_text.h"

using namespace isonorm;
using namespace isonorm::test;

TEST_CASE("declarations are read from a header") {
  const auto found = declarations_in(R"(
namespace isonorm {
struct Options { double eps = 1; int f(int); };
// Tensor comment(const Tensor& x);
Tensor sum(const Tensor& x, std::vector<int> dims = {},
           bool keepdim = false);
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor twice(const Tensor& x) { return add(x, x); }
namespace reference {
Pair both(const Tensor& a, double p);
}
namespace detail { Tensor hidden(const Tensor& x); }
}
)",
                                     "h");
  std::vector<std::string> seen;
  for (const Declaration& d : found) seen.push_back(d.name + " " + d.signature);
  CHECK(seen == std::vector<std::string>{"sum sum(x, std::vector<int> dims = {}, bool keepdim = false)",
                                         "twice twice(x)", "reference::both both(a, double p)"});
}

TEST_CASE("every public function has a row, and every row a function") {
  std::set<std::string> declared, rows, compositions, fused;
  const std::string umbrella = read_text("isonorm.h");
  for (const Declaration& d : public_functions()) {
    INFO(d.header << " declares " << d.signature);
    CHECK(umbrella.find("#include \"" + d.header + "\"") != std::string::npos);
    (d.name.starts_with("reference::") ? compositions : declared)
        .insert(d.name.starts_with("reference::") ? d.name.substr(11) : d.signature);
  }
  for (const OpCase& op : op_cases()) rows.insert(op.signature);
  for (const FusedCase& f : fused_cases()) CHECK(fused.insert(f.name).second);
  CHECK(declared.size() > 50);
  for (const std::string& s : declared) {
    INFO("no row in tests/op_cases for " << s);
    CHECK(rows.count(s) == 1);
  }
  for (const std::string& s : rows) {
    INFO("no public header declares " << s);
    CHECK(declared.count(s) == 1);
  }
  CHECK(compositions == fused);
}

TEST_CASE("rows are complete") {
  std::set<std::string> signatures;
  for (const OpCase& op : op_cases()) {
    INFO(op.signature);
    CHECK(signatures.insert(op.signature).second);
    CHECK(op.signature.starts_with(op.name + "("));
    CHECK_FALSE(op.formula.empty());
    CHECK_FALSE(op.group.empty());
    std::set<std::string> names;
    int checks = 0, large = 0;
    for (const Sample& s : op.samples) {
      INFO(s.name());
      const bool distinct = names.insert(s.name()).second;
      const bool real = std::any_of(s.inputs.begin(), s.inputs.end(),
                                    [](const Array& a) { return a.kind == Kind::real && a.size() > 0; });
      checks += distinct && op.differentiable && s.gradient && !s.large && real;
      large += s.large;
      CHECK((s.reference || s.verify));
    }
    if (op.differentiable) CHECK(checks >= op.checks);
    CHECK(large > 0);
  }
}

TEST_CASE("docs/ops.md is current") {
  INFO("run build/release/tests/ops_docs > docs/ops.md");
  CHECK(read_text("docs/ops.md") == ops_docs());
}
