#include "equivalence/compare/message.h"

#include "core/printed.h"
#include "equivalence/compare/compare.h"

namespace isonorm::equivalence {
namespace {

constexpr size_t kMostRows = 8;

std::string in_words(const std::vector<std::string>& parts, const char* last = " and ") {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) all += (i == 0 ? "" : i + 1 < parts.size() ? ", " : last) + parts[i];
  return all;
}

std::string counted(size_t n, const std::string& quantity) { return plural(static_cast<int64_t>(n), quantity.c_str()); }

}  // namespace

std::string where_to_look(const std::string& at, std::span<const CompareCount> counts) {
  std::vector<std::string> agree, differ;
  size_t differing = 0;
  for (const CompareCount& c : counts) {
    const bool loss = &c == counts.data();
    if (c.differing == 0 && c.compared > 0)
      agree.push_back(loss ? "the loss" : "all " + counted(c.compared, c.quantity));
    if (c.differing == 0) continue;
    differ.push_back(loss ? "the loss" : text(c.differing, " of ", counted(c.compared, c.quantity)));
    differing += c.differing;
  }
  const auto differs = [&](size_t i) { return i < counts.size() && counts[i].differing > 0; };
  std::string look;
  if (differs(0))
    look = differs(1) ? "look at the forward" : "look at a term of the loss that has no gradient";
  else if (differs(1))
    look = "look at the backward";
  else if (differs(2) && counts[2].quantity == "weight")
    look = "look at the update";
  const std::string verb = differing == 1 ? " differs" : " differ";
  return text(at,
              agree.empty() ? ""
                            : text(' ', in_words(agree),
                                   agree.size() == 1 && differs(1) && !differs(0) ? " agrees" : " agree", ", and"),
              ' ', in_words(differ), verb, look.empty() ? "" : ": ", look);
}

std::string row_of(const DifferingTensor& t) {
  return text(t.quantity, t.place.tensor.empty() ? "" : " of " + t.place.tensor, ": ", scientific(t.deviation),
              t.as_a_whole ? " of its size" : "", ", the bound is ", scientific(t.bound), "; ",
              t.place.tensor.empty() ? "it" : "", describe(t.place));
}

std::string Comparison::message() const {
  std::string all = text(name_of(verdict), ": ", reason);
  std::vector<DifferingTensor> rows;
  if (first && verdict == Verdict::different)
    for (const DifferingTensor& t : first->tensors)  // wrong gradients make wrong weights
      if (t.quantity != "weight" || rows.empty() || rows.back().quantity == "weight") rows.push_back(t);
  for (size_t i = 0; i < rows.size() && i < kMostRows; ++i) all += "\n  " + row_of(rows[i]);
  if (rows.size() > kMostRows) all += text("\n  and ", rows.size() - kMostRows, " more");
  if (!place.empty()) all += "\n  " + place;
  if (!cause.empty())
    all += "\n  cause: " + cause;
  else if (!tried.empty())
    all += text("\n  no cause was found; tested: ", in_words(tried));
  return all;
}

}  // namespace isonorm::equivalence
