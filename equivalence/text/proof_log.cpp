#include "equivalence/text/proof_log.h"

#include "equivalence/text/proof_text.h"
#include "io/json_text.h"

namespace isonorm::equivalence {
namespace {

// Loss and deviations of one run at `step` (from 1); null where it has not got there.
json step_json(const RunResult& run, size_t step) {
  const auto at = [step](const std::vector<double>& v) { return step <= v.size() ? json(v[step - 1]) : json(nullptr); };
  return {{"run", run_name(run)},
          {"loss", at(run.losses)},
          {"loss_deviation", at(run.deviations.loss)},
          {"gradient_deviation", at(run.deviations.gradient)},
          {"weight_deviation", at(run.deviations.weight)}};
}

}  // namespace

std::string log_step(const StepInfo& info) {
  const bool negative = info.phase == Phase::negative;
  json runs = json::array();
  if (!negative)
    for (const RunResult& run : info.so_far.controls) runs.push_back(step_json(run, info.step));
  for (const RunResult& run : info.so_far.runs)
    if (negative == (run.expected == Verdict::different)) runs.push_back(step_json(run, info.step));
  return dump({{"phase", name_of(info.phase)},
               {"step", info.step},
               {"lr", info.lr},
               {"loss", info.loss},
               {"seconds", info.seconds},
               {"runs", runs}}) +
         "\n";
}

std::string log_verdict(const ProofResult& proof) {
  const reports::Document d = document_of(proof);
  return dump({{"verdict", d.verdict}, {"sentence", closing(d)}, {"seconds", proof.seconds}}) + "\n";
}

}  // namespace isonorm::equivalence
