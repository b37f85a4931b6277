#include "equivalence/json.h"

#include <cmath>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>

#include "equivalence/summary.h"

namespace isonorm::equivalence {
namespace {

using json = nlohmann::ordered_json;  // keys in the order in which they are written here

// Text that is not UTF-8 (a path may be anything) is written with replacement characters instead of being refused.
std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

template <class T> json optional(const std::optional<T>& value) { return value ? json(*value) : json(nullptr); }

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

// A number where the option's text is one, else the text.
json option_value(const std::string& name, const std::string& value) {
  const json parsed = json::parse(value, nullptr, false);
  return name != "data" && (parsed.is_number() || parsed.is_boolean()) ? parsed : json(value);
}

json manifest_json(const Manifest& m) {
  json options = json::object();
  for (const auto& [name, value] : m.options) options[name] = option_value(name, value);
  return {{"version", m.version},
          {"compiler", m.compiler},
          {"flags", m.flags},
          {"instructions", m.instructions},
          {"blas", m.blas_version},
          {"blas_core", m.blas_core},
          {"blas_flavour", m.blas_flavour},
          {"threads", m.threads},
          {"cpu", m.cpu},
          {"seed", m.seed},
          {"dtype", m.dtype},
          {"options", options},
          {"data_sha256", m.data_sha256},
          {"command", repeat_command(m)}};
}

json run_json(const RunResult& run) {
  return {{"form", run.form},
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

json evaluation_json(const Evaluation& e, ModelKind model) {
  return {{"step", e.step},
          {"loss", e.loss},
          {"perplexity", model == ModelKind::gpt ? json(std::exp(e.loss)) : json(nullptr)},
          {"accuracy", e.accuracy()},
          {"right", e.right},
          {"predictions", e.predictions}};
}

// Of a manifest what two parts of one training have in common, wherever its data lie.
json identity(const json& manifest) {
  json options = manifest.value("options", json::object());
  for (const char* name : {"data", "threads"}) options.erase(name);
  if (options.value("init", json("")) == "") options.erase("init");  // a log from before there was a choice has none
  return {options, manifest.value("data_sha256", "")};
}

// Of a part of a log, its manifest with the options that the training has now in place of those that `earlier`
// ("to step 30 with --lr 0.1 --steps 30") says it had.
json as_now(json part, const json& now, const std::string& earlier) {
  if (!part.is_object() || !part.contains("options") || !part["options"].is_object()) return part;
  json& options = part["options"];
  for (const char* name : kExtendable) {
    if (!options.contains(name)) continue;
    const json& value = options[name];
    const std::string said = text(" --", name, " ", value.is_string() ? value.get<std::string>() : value.dump());
    for (const char* end : {" ", ";"})
      if ((earlier + ";").find(said + end) != earlier.npos) options[name] = now["options"][name];
  }
  return part;
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

std::string to_json(const TrainingResult& training) {
  json evaluations = json::array(), losses = json::array();
  for (const Evaluation& e : training.evaluations) evaluations.push_back(evaluation_json(e, training.options.model));
  for (const TrainingStep& s : training.steps) losses.push_back(s.loss);
  const bool tested = !training.evaluations.empty();
  const json last = tested ? evaluations.back() : json::object();
  const json object = {{"form", training.form},
                       {"sentence", summary_sentence(training)},
                       {"accuracy", tested ? last["accuracy"] : json(nullptr)},
                       {"test_loss", tested ? last["loss"] : json(nullptr)},
                       {"manifest", manifest_json(training.manifest)},
                       {"parameters", training.parameters},
                       {"first_step", training.first_step},
                       {"earlier", training.earlier_options.empty() ? json(nullptr) : json(training.earlier_options)},
                       {"losses", losses},
                       {"evaluations", evaluations},
                       {"seconds", training.seconds}};
  return dump(object, 2) + "\n";
}

std::string log_manifest(const Manifest& manifest) { return dump({{"manifest", manifest_json(manifest)}}) + "\n"; }

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

std::string log_step(const TrainingStep& s) {
  return dump({{"step", s.step},
               {"lr", s.lr},
               {"loss", s.loss},
               {"gradient_norm", optional(s.gradient_norm)},
               {"seconds", s.seconds}}) +
         "\n";
}

std::string log_evaluation(const Evaluation& e, ModelKind model) {
  return dump({{"evaluation", evaluation_json(e, model)}}) + "\n";
}

int64_t logged_bytes(std::istream& log, const Manifest& manifest, int until) {
  check(log.peek() == '{' || log.eof(), "this is no log, whose lines are JSON objects: choose another file");
  const json wanted = identity(manifest_json(manifest));
  int64_t at = 0, kept = 0;
  bool over = false, others = true;  // behind the first line that is not kept; in a part of another training
  for (std::string line; std::getline(log, line);) {
    const bool whole = !log.eof();
    at += static_cast<int64_t>(line.size()) + whole;
    const json j = json::parse(line, nullptr, false);
    int step = 0;
    if (j.is_object() && j.contains("manifest")) {
      others = !(identity(j["manifest"]) == wanted);
      over = over && !others;
    } else if (j.is_object()) {
      const json& object = j.contains("evaluation") ? j["evaluation"] : j;
      if (object.is_object() && object.contains("step") && object["step"].is_number_integer()) step = object["step"];
    }
    over = over || !whole || (!others && step > until);
    if (!over) kept = at;
  }
  return kept;
}

TrainingCourse logged_course(std::istream& log, const Manifest& manifest, int until, const std::string& earlier) {
  std::map<int, TrainingStep> steps;
  std::map<int, Evaluation> evaluations;
  bool ours = false;
  const json wanted = manifest_json(manifest);
  for (std::string line; std::getline(log, line);) {
    const json j = json::parse(line, nullptr, false);
    if (!j.is_object()) continue;
    try {
      if (j.contains("manifest")) {
        ours = identity(as_now(j["manifest"], wanted, earlier)) == identity(wanted);
      } else if (ours && j.contains("evaluation")) {
        const json& e = j["evaluation"];
        const int step = e.at("step");
        if (step <= until) evaluations[step] = {step, e.at("loss"), e.at("right"), e.at("predictions")};
      } else if (ours && j.contains("step")) {
        TrainingStep s{.step = j["step"], .lr = j.at("lr"), .loss = j.at("loss"), .seconds = j.at("seconds")};
        if (!j.at("gradient_norm").is_null()) s.gradient_norm = j["gradient_norm"].get<double>();
        if (s.step >= 1 && s.step <= until) steps[s.step] = s;
      }
    } catch (const json::exception&) {  // a line of something else
    }
  }
  TrainingCourse course;
  for (const auto& [step, s] : steps) course.steps.push_back(s);
  for (const auto& [step, e] : evaluations) course.evaluations.push_back(e);
  return course;
}

std::string log_end(const TrainingResult& training) {
  return dump({{"sentence", summary_sentence(training)}, {"seconds", training.seconds}}) + "\n";
}

}  // namespace isonorm::equivalence
