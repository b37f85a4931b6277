#include "equivalence/judge/judgement.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "core/system/foreign_text.h"

namespace isonorm::equivalence {
namespace {

constexpr size_t kMostRows = 8;

// "all 8 gradients", "the buffer".
std::string all_of(const CompareCount& c) {
  return c.compared == 1 ? "the " + c.quantity
                         : text("all ", plural(static_cast<int64_t>(c.compared), c.quantity.c_str()));
}

// "2 of 8 gradients", "all 8 gradients", "the buffer".
std::string some_of(const CompareCount& c) {
  if (c.differing == c.compared) return all_of(c);
  return text(c.differing, " of ", plural(static_cast<int64_t>(c.compared), c.quantity.c_str()));
}

// Two numbers with the fewest digits, but at least 4, that show their difference in two digits.
std::pair<std::string, std::string> told_apart(double a, double b) {
  int digits = 4;
  while (digits < 17 && !(std::abs(a - b) >= 10 * std::pow(10, 1 - digits) * std::max(std::abs(a), std::abs(b))))
    ++digits;
  const auto written = [digits](double x) { return printed("%.*g", digits, x); };
  return std::isfinite(a) && std::isfinite(b) ? std::pair(written(a), written(b))
                                              : std::pair(number_text(a), number_text(b));
}

// "gradient of w: 2.0e+00, the bound is 5.8e-13; w[3, 1] is 0.031, in the reference -0.012".
std::string line_of(const Deviation& d) {
  const std::string& tensor = d.where.tensor;
  const auto [value, reference] = told_apart(d.where.value, d.where.reference);
  return text(d.what, tensor.empty() ? "" : " of " + tensor, ": ", scientific(d.size),
              d.as_a_whole ? " of its size" : "", ", the bound is ", scientific(d.bound), "; ",
              tensor.empty() ? "it" : text(tensor, d.where.index), " is ", value, ", in the reference ", reference);
}

}  // namespace

bool Deviation::explained() const { return size <= bound; }

std::string where_to_look(const std::string& at, const std::vector<CompareCount>& counts) {
  std::vector<std::string> agree, differ;
  size_t agreeing = 0, differing = 0;
  for (const CompareCount& c : counts) {
    if (c.differing == 0 && c.compared > 0) agree.push_back(all_of(c)), agreeing += c.compared;
    if (c.differing > 0) differ.push_back(some_of(c)), differing += c.differing;
  }
  const auto differs = [&](const std::string& quantity) {
    return std::any_of(counts.begin(), counts.end(),
                       [&](const CompareCount& c) { return c.quantity == quantity && c.differing > 0; });
  };
  std::string look;
  if (differs("output"))
    look = "look at the forward";
  else if (differs("loss"))
    look = differs("gradient") ? "look at the forward" : "look at a term of the loss that has no gradient";
  else if (differs("gradient"))
    look = "look at the backward";
  else if (differs("weight"))
    look = "look at the update";
  else if (differs("buffer"))
    look = "look at the buffers that the pass changes";
  const auto verb = [](size_t n, const char* one, const char* many) { return n == 1 ? one : many; };
  const std::string agreed =
      agree.empty() ? "" : text(' ', in_words(agree), verb(agreeing, " agrees", " agree"), ", and");
  return text(at, agreed, ' ', in_words(differ), verb(differing, " differs", " differ"), look.empty() ? "" : ": ",
              look);
}

std::string in_words(const std::vector<std::string>& parts) {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) all += (i == 0 ? "" : i + 1 < parts.size() ? ", " : " and ") + parts[i];
  return all;
}

std::string Judgement::sentence() const {
  std::string all = text(name_of(verdict), ": ", reason);
  std::vector<Deviation> rows;
  if (first_difference && verdict == Verdict::different)
    for (const Deviation& d : first_difference->deviations)  // wrong gradients make wrong weights
      if (d.what != "weight" || rows.empty() || rows.back().what == "weight") rows.push_back(d);
  for (size_t i = 0; i < rows.size() && i < kMostRows; ++i) all += "\n  " + line_of(rows[i]);
  if (rows.size() > kMostRows) all += text("\n  and ", rows.size() - kMostRows, " more");
  if (!place.empty()) all += "\n  " + place;
  if (!likely_cause.empty())
    all += text("\n  ", cause_tested ? "cause: " : "likely cause: ", likely_cause);
  else if (!tried.empty())
    all += text("\n  no cause was found; tested: ", in_words(tried));
  ShortList nowhere(", ", 6);
  if (equivalent())
    for (const std::string& name : not_compared) nowhere.add(name);
  return nowhere.empty() ? all : text(all, "; not compared: ", nowhere);
}

}  // namespace isonorm::equivalence
