#include "training/records/training_log.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <istream>
#include <map>

#include "io/json_text.h"
#include "training/records/read_log.h"
#include "training/records/training_text.h"

namespace isonorm::training {
namespace {

// The option's value as a JSON number if it is one, else as text.
json logged_value(const std::string& name, const std::string& value) {
  const json read = parsed(value);
  return !names_a_file(name) && (read.is_number() || read.is_boolean()) ? read : json(value);
}

json manifest_json(const Manifest& m) {
  json options = json::object();
  for (const auto& [name, value] : m.options) options[name] = logged_value(name, value);
  json object = {{"version", m.version},
                 {"compiler", m.compiler},
                 {"flags", m.flags},
                 {"instructions", m.instructions},
                 {"instructions_reason", m.instructions_reason},
                 {"products", m.products},
                 {"blas", m.blas_version},
                 {"blas_core", m.blas_core},
                 {"blas_flavour", m.blas_flavour},
                 {"threads", m.threads},
                 {"cpu", m.cpu},
                 {"seed", m.seed},
                 {"dtype", m.dtype},
                 {"options", options},
                 {"data_sha256", m.data_sha256},
                 {"command", m.command}};
  if (!m.classes.empty()) object["classes"] = m.classes;
  if (!m.init_sha256.empty()) object["init_sha256"] = m.init_sha256;
  if (!m.earlier.empty()) object["earlier"] = m.earlier;
  return object;
}

json values_of(const Evaluation& e, Input input) {
  return {{"loss", e.loss},
          {"perplexity", input != Input::images ? json(std::exp(e.loss)) : json(nullptr)},
          {"accuracy", e.accuracy()},
          {"right", e.right},
          {"predictions", e.predictions}};
}

// The entries of a manifest that all parts of a training share, sorted by name: without file names, and without
// options that may change on resume. Null if `manifest` is not an object.
nlohmann::json identity(const json& manifest) {
  if (!manifest.is_object()) return {};
  nlohmann::json of = nlohmann::json::object();
  for (const char* name : {"options", "data_sha256", "init_sha256", "earlier"})
    if (manifest.contains(name)) of[name] = manifest[name];
  if (!of.contains("options") || !of["options"].is_object()) return of;
  const auto leave_out = [&](const std::string& name, const char* value) {  // older logs lack the entry
    const auto at = of["options"].find(name);
    if (at != of["options"].end() && *at == nlohmann::json(logged_value(name, value))) of["options"].erase(at);
  };
  for (const auto& [name, value] : kNewOptions) leave_out(name, value);
  for (const auto& [name, value] : kNewModelOptions) leave_out(std::string(name), value);
  // whole_parts is rank_invariant in older logs.
  for (const char* name : {"data", "test_data", "tokenizer", "ids", "text", "init", "threads", "ranks",
                           "rank_invariant", "whole_parts", "zero", "device", "any_order"})
    of["options"].erase(name);
  return of;
}

// The manifest of a part of a log. Options that the training changed since then, according to `earlier`
// ("to step 30 with --lr 0.1 --steps 30"), have their present values.
json as_now(json part, const json& now, const std::string& earlier) {
  if (!part.is_object() || !part.contains("options") || !part["options"].is_object()) return part;
  json& options = part["options"];
  for (const char* name : kExtendable) {
    if (!options.contains(name)) continue;
    const json& value = options[name];
    const std::string said = text(" ", word_of(name), " ", value.is_string() ? value.get<std::string>() : value.dump());
    for (const char* end : {" ", ";"})
      if ((earlier + ";").find(said + end) != earlier.npos) options[name] = now["options"][name];
  }
  return part;
}

// True if the manifest belongs to the steps before the training was extended.
bool before(const json& part, json now, const std::string& earlier) {
  json then = as_now(part, now, earlier);
  if (earlier.empty() || then == part) return false;
  then.erase("earlier"), now.erase("earlier");
  return identity(then) == identity(now);
}

// The step of an entry; -1: it has none.
int step_number(const json& j) {
  const int64_t n = whole_number(j).value_or(-1);
  return n >= 0 && n < INT_MAX ? static_cast<int>(n) : -1;
}

// Reads the course of the training with this manifest.
TrainingCourse course_of(std::istream& log, const json& wanted, const std::string& earlier, int until) {
  std::map<int, TrainingStep> steps;
  std::map<int, Evaluation> evaluations;
  bool ours = false;
  for (std::string line; next_line(log, line);) {
    const json j = parsed(line);
    if (!j.is_object()) continue;
    try {
      if (j.contains("manifest")) {
        ours = identity(j["manifest"]) == identity(wanted) || before(j["manifest"], wanted, earlier);
      } else if (ours && j.contains("evaluation")) {
        const json& e = j["evaluation"];
        const auto right = whole_number(e.at("right")), predictions = whole_number(e.at("predictions"));
        if (!right || !predictions) continue;
        const Evaluation found{step_number(e.at("step")), e.at("loss"), *right, *predictions};
        if (found.step >= 0 && found.step <= until && found.predictions > 0) evaluations[found.step] = found;
      } else if (ours && j.contains("step")) {
        TrainingStep s{
            .step = step_number(j["step"]), .lr = j.at("lr"), .loss = j.at("loss"), .seconds = j.at("seconds")};
        if (!j.at("gradient_norm").is_null()) s.gradient_norm = j["gradient_norm"].get<double>();
        if (s.step >= 1 && s.step <= until) steps[s.step] = s;
      }
    } catch (const json::exception&) {  // not a line of a log
    }
  }
  TrainingCourse course;
  for (const auto& [step, s] : steps) course.steps.push_back(s);
  for (const auto& [step, e] : evaluations) course.evaluations.push_back(e);
  return course;
}

}  // namespace

std::string log_manifest(const Manifest& manifest) { return dump({{"manifest", manifest_json(manifest)}}) + "\n"; }

std::string log_step(const TrainingStep& s) {
  return dump({{"step", s.step},
               {"lr", s.lr},
               {"loss", s.loss},
               {"gradient_norm", optional(s.gradient_norm)},
               {"seconds", s.seconds}}) +
         "\n";
}

std::string log_evaluation(const Evaluation& e, Input input) {
  json values = {{"step", e.step}};
  values.update(values_of(e, input));
  return dump({{"evaluation", values}}) + "\n";
}

int64_t logged_bytes(std::istream& log, const Manifest& manifest, int until) {
  const nlohmann::json wanted = identity(manifest_json(manifest));
  int64_t at = 0, kept = 0;
  bool over = false, others = true;  // over: after the first removed line; others: in another training's part
  for (std::string line; next_line(log, line);) {
    const bool whole = !log.eof();
    at += static_cast<int64_t>(line.size()) + whole;
    const json j = parsed(line);
    int step = 0;
    if (j.is_object() && j.contains("manifest")) {
      others = !(identity(j["manifest"]) == wanted);
      over = over && !others;
    } else if (j.is_object()) {
      const json& object = j.contains("evaluation") ? j["evaluation"] : j;
      if (object.is_object() && object.contains("step")) step = std::max(0, step_number(object["step"]));
    }
    // An incomplete line is removed, unless it is another training's last line that lacks only its line end.
    over = over || (!whole && !(others && j.is_object())) || (!others && step > until);
    if (!over) kept = at;
  }
  return kept;
}

TrainingCourse logged_course(std::istream& log, const Manifest& manifest, int until) {
  return course_of(log, manifest_json(manifest), manifest.earlier, until);
}

LoggedTraining last_logged(std::istream& log) {
  json last;
  for (std::string line; next_line(log, line);)
    if (const json j = parsed(line); j.is_object() && j.contains("manifest")) last = j["manifest"];
  check(last.is_object() && last.contains("options") && last["options"].is_object(),
        "it is not a log of isonorm train --log FILE.jsonl: no line is a manifest");
  LoggedTraining found;
  const auto word = [](const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  for (const auto& [name, value] : last["options"].items()) found.options.emplace_back(name, word(value));
  if (last.contains("command")) found.command = word(last["command"]);
  log.clear(), log.seekg(0);
  check_io(!log.fail(), "it cannot be read twice, expected a file");
  found.course = course_of(log, last, last.contains("earlier") ? word(last["earlier"]) : "", INT_MAX);
  return found;
}

std::string log_end(const TrainingResult& training) {
  return dump({{"sentence", closing(document_of(training))}, {"seconds", training.seconds}}) + "\n";
}

}  // namespace isonorm::training
