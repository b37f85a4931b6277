#include "tools/proof_text.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/printed.h"
#include "equivalence/text/summary.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

std::string painted(const std::string& word, bool good, bool color) {
  return color ? text(good ? "\x1b[32m" : "\x1b[31;1m", word, "\x1b[0m") : word;
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

std::string proof_closing(const ProofResult& proof, bool color, size_t width) {
  const bool paint = color && proof.verdict != Verdict::undecided;
  return text(painted(reports::wrapped(summary_sentence(proof), width), proof.equivalent(), paint), "\n");
}

}  // namespace isonorm::tools
