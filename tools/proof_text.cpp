#include "tools/proof_text.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"

namespace isonorm::tools {
using namespace equivalence;

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

}  // namespace isonorm::tools
