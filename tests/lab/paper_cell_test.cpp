// The cells of the table of times: sizes compared with the published ones, and their order.
#include "lab/papers/timing/paper_cell.h"

#include <set>

#include "tests/support/catch.h"

using namespace isonorm::papers;

TEST_CASE("cells of the paper: weights, rows and operations") {
  // Models of 2305.14858: ViT base has 12 blocks of 12 width^2 weights, 197 rows; GPT xl has heads of 3072 entries and
  // width 2048.
  const PaperCell base{true, "base", false, 4, 0}, step{true, "base", true, 4, 0}, xl{false, "xl", false, 1, 128};
  CHECK(base.weights() == 12.0 * 12 * 768 * 768);
  CHECK(base.tokens() == 4 * 197);
  // Attention adds two products per block: 2 x 197 x 768 multiplications more for each row.
  CHECK(base.operations() == 2.0 * 4 * 197 * (12.0 * 12 * 768 * 768 + 2 * 12 * 197 * 768));
  CHECK(step.operations() == 3 * base.operations());
  CHECK(xl.weights() == 24.0 * 2048 * (4 * 3072 + 2 * 4 * 2048) + 2048.0 * 50257);
  CHECK(xl.tokens() == 128);
  const double row = 4.0 * (6 * 768 + 4 * 768 + 2 * 3072);  // activations
  CHECK(base.bytes(5) == 5 * 4 * 2 * base.weights() + row * 4 * 197);
  CHECK(step.bytes(1) == 4 * 6 * base.weights() + 12 * row * 4 * 197);
  CHECK(xl.operations() == 2.0 * 128 * (xl.weights() + 24.0 * 128 * 3072));
  CHECK(base.name() == "ViT base, 4");
  CHECK(xl.name() == "GPT xl, 1 x 128");
  CHECK((PaperCell{true, "tiny", true, 1, 0}.published() == "0.977 / 0.983"));
  CHECK((PaperCell{false, "small", false, 1, 512}.published() == "0.90 / 0.89"));
  CHECK((PaperCell{false, "small", false, 1, 128}.published().empty()));
  CHECK((PaperCell{false, "small", false, 16, 512}.published().empty()));
  CHECK((PaperCell{false, "small", true, 1, 512}.published().empty()));
  CHECK(base.published().empty());  // only averages are published for inference
}

TEST_CASE("cells of the paper: each once, the small ones among all") {
  const auto names = [](bool full) {
    std::multiset<std::string> found;
    for (const PaperCell& c : paper_cells(full)) found.insert(c.name());
    return found;
  };
  const auto all = names(true), few = names(false);
  CHECK(all.size() == 2 * (6 * 6 + 4 * 2 * 3));
  CHECK(std::set(all.begin(), all.end()).size() == all.size());
  CHECK(few.size() == 2 * (6 * 2 + 4));
  for (const std::string& name : few) CHECK(all.count(name) == 1);
}
