#include "tools/proof_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "equivalence/printed.h"
#include "equivalence/summary.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

std::string painted(const std::string& word, bool good, bool color) {
  return color ? text(good ? "\x1b[32m" : "\x1b[31;1m", word, "\x1b[0m") : word;
}

constexpr size_t kColumns = 9;
using Cells = std::array<std::string, kColumns>;

Cells cells_of(const SummaryRow& row) {
  const auto beside = [](const std::string& a, const std::string& control) {
    return control.empty() ? a : text(a, " / ", control);
  };
  return {row.name,
          row.parameters,
          beside(row.loss, row.control_loss),
          beside(row.gradient, row.control_gradient),
          beside(row.weight, row.control_weight),
          row.accuracy,
          row.differing,
          row.expected,
          row.observed};
}

}  // namespace

std::string duration_text(double seconds) {
  const long s = std::lround(std::max(0.0, seconds));
  if (s >= 3600) return printed("%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  return printed("%ld:%02ld", s / 60, s % 60);
}

std::string progress_text(const StepInfo& info, double rate) {
  std::string line = text(name_of(info.phase), " ", info.step, "/", info.steps);
  if (info.phase != Phase::testing)
    line += text(printed("  loss %.3f", info.loss), "  deviation ", scientific(info.deviation), " (controls ",
                 scientific(info.control_deviation), ")");
  if (info.done > 0) line += text("  ", duration_text(info.seconds * (1 - info.done) / info.done), " left");
  if (rate > 0) line += printed("  %.2f steps/s", rate);
  return line;
}

std::string proof_table(const ProofResult& proof, bool color) {
  const std::vector<SummaryRow> rows = summary_rows(proof);
  const Cells head[] = {
      {"", "", "loss", "gradient", "weights", "test", "predicts", "", ""},
      {"run", "parameters", "/ control", "/ control", "/ control", "accuracy", "otherwise", "expected", "observed"}};
  std::array<size_t, kColumns> width{};
  const auto widen = [&](const Cells& cells) {
    for (size_t c = 0; c < kColumns; ++c) width[c] = std::max(width[c], cells[c].size());
  };
  for (const Cells& cells : head) widen(cells);
  for (const SummaryRow& row : rows) widen(cells_of(row));

  std::string out;
  const auto append = [&](const Cells& cells, const SummaryRow* row) {
    std::string line;
    for (size_t c = 0; c < kColumns; ++c) {
      const std::string gap(width[c] - cells[c].size(), ' ');
      const bool verdict = row && c + 1 == kColumns && !cells[c].empty();
      const bool paint = color && cells[c] != name_of(Verdict::undecided);
      const std::string cell = verdict ? painted(cells[c], row->as_expected, paint) : cells[c];
      line += c == 0 ? text(cell, gap) : text("  ", gap, cell);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += text(line, "\n");
  };
  for (const Cells& cells : head) append(cells, nullptr);
  size_t total = 2 * (kColumns - 1);
  for (size_t w : width) total += w;
  out += text(std::string(total, '-'), "\n");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].kind != rows[i - 1].kind) out += "\n";
    append(cells_of(rows[i]), &rows[i]);
  }
  return out;
}

std::string proof_closing(const ProofResult& proof, bool color) {
  const bool paint = color && proof.verdict != Verdict::undecided;
  return text(painted(summary_sentence(proof), proof.equivalent(), paint), "\n");
}

}  // namespace isonorm::tools
