#include "equivalence/text/proof_json.h"

#include "equivalence/text/summary.h"
#include "training/records/manifest_json.h"

namespace isonorm::equivalence {
namespace {

const char* verdict(const ProofResult& proof) {
  return proof.verdict == Verdict::same        ? "equivalent"
         : proof.verdict == Verdict::different ? "not equivalent"
                                               : "undecided";
}

json magnitudes_json(const Magnitudes& m) { return {{"loss", m.loss}, {"gradient", m.gradient}, {"weight", m.weight}}; }

json horizon_json(const Horizon& h, size_t steps) {
  return {{"steps", h.steps},
          {"of", steps},
          {"ended_by", h.ended_by.empty() ? json(nullptr) : json(h.ended_by)},
          {"term", h.term.empty() ? json(nullptr) : json(h.term)},
          {"limit", magnitudes_json(h.limit)},
          {"resolution", magnitudes_json(h.resolution)}};
}

json run_json(const RunResult& run) {
  return {{"form", run.form},
          {"device", run.device ? json(text(*run.device)) : json(nullptr)},
          {"parametrisation", run.variant->parametrisation()},
          {"fault", *run.fault ? json(run.fault) : json(nullptr)},
          {"expected", name_of(run.expected)},
          {"observed", name_of(run.observed)},
          {"as_expected", run.as_expected},
          {"reason", run.reason},
          {"loss_deviation", run.loss_deviation},
          {"gradient_deviation", run.gradient_deviation},
          {"weight_deviation", run.weight_deviation},
          {"accuracy", optional(run.accuracy)},
          {"differing_predictions", optional(run.differing_predictions)},
          {"parameters", run.parameters},
          {"losses", run.losses}};
}

json control_json(const RunResult& run) {
  json object = run_json(run);
  for (const char* key : {"parametrisation", "fault", "expected", "observed", "as_expected", "reason"})
    object.erase(key);
  object["seed"] = run.seed;
  return object;
}

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

std::string to_json(const ProofResult& proof) {
  json runs = json::array(), controls = json::array();
  for (const RunResult& run : proof.runs) runs.push_back(run_json(run));
  for (const RunResult& run : proof.controls) controls.push_back(control_json(run));
  const json reference = {{"form", proof.reference.form},
                          {"accuracy", optional(proof.reference.accuracy)},
                          {"parameters", proof.reference.parameters},
                          {"losses", proof.reference.losses}};
  const json object = {
      {"verdict", verdict(proof)},
      {"sentence", summary_sentence(proof)},
      {"horizon", horizon_json(proof.horizon, proof.reference.losses.size())},
      {"manifest", manifest_json(proof.manifest)},
      {"control",
       {{"loss", proof.control_loss}, {"gradient", proof.control_gradient}, {"weight", proof.control_weight}}},
      {"controls", controls},
      {"reference", reference},
      {"runs", runs},
      {"test_count", proof.test_count},
      {"seconds", proof.seconds}};
  return dump(object, 2) + "\n";
}

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
  return dump({{"verdict", verdict(proof)},
               {"sentence", summary_sentence(proof)},
               {"horizon", horizon_json(proof.horizon, proof.reference.losses.size())},
               {"seconds", proof.seconds}}) +
         "\n";
}

}  // namespace isonorm::equivalence
