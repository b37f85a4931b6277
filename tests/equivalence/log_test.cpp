// Logs of proofs and trainings, read back by a parser.
#include <nlohmann/json.hpp>

#include "equivalence/text/proof_text.h"
#include "tests/equivalence/room.h"
#include "tests/equivalence/synthetic.h"
#include "training/records/training_log.h"
#include "training/records/training_text.h"

using nlohmann::json;

namespace {

const TrainingResult& trained() {
  static const TrainingResult result = synthetic_training();
  return result;
}

// The manifest of a training with another learning rate.
Manifest another_rate() {
  Manifest m = trained().manifest;
  for (auto& [name, value] : m.options)
    if (name == "lr") value = "0.5";
  return m;
}
std::string step(int at, double loss = 1) {
  return log_step(TrainingStep{.step = at, .lr = 0.1, .loss = loss, .gradient_norm = 0.5, .seconds = 1});
}

}  // namespace

TEST_CASE("log: the log of a training") {
  const std::string line = log_step(TrainingStep{.step = 3, .lr = 0.1, .loss = 2.5, .gradient_norm = {}, .seconds = 1});
  CHECK(line.find('\n') == line.size() - 1);
  const json step = json::parse(line);
  CHECK(step["step"] == 3);
  CHECK(step["loss"] == 2.5);
  CHECK(step["gradient_norm"].is_null());
  CHECK(json::parse(log_step({.gradient_norm = 0.75}))["gradient_norm"] == 0.75);
  CHECK(json::parse(log_evaluation(trained().evaluations[0], Input::images))["evaluation"]["accuracy"] == 0.5);
  CHECK(json::parse(log_end(trained()))["sentence"] == closing(document_of(trained())));
}

TEST_CASE("log: of a log comes back what belongs to the training, up to a step, the last word of each step") {
  const std::string ours = log_manifest(trained().manifest), theirs = log_manifest(another_rate());
  const std::string log = theirs + step(1, 9) + ours + step(1, 3) + step(2, 2) + "{\"step\": 3, \"lr\"\n" +
                          "{\"step\": 4}\n" + step(5, 1) + log_evaluation({2, 0.25, 3, 4}, Input::text) + ours +
                          step(2, 1.5) + step(3, 1.25) + theirs + step(1, 8);
  const auto course_of = [&](const Manifest& manifest) {
    std::istringstream in(log);
    return logged_course(in, manifest, 3);
  };
  const TrainingCourse course = course_of(trained().manifest);
  REQUIRE(course.steps.size() == 3);
  CHECK(course.steps[0].loss == 3);
  CHECK(course.steps[1].loss == 1.5);
  CHECK(course.steps[2].step == 3);
  CHECK(course.steps[2].gradient_norm == 0.5);
  REQUIRE(course.evaluations.size() == 1);
  CHECK(course.evaluations[0].accuracy() == 0.75);
  // The device, or another order of sums, does not make it another training.
  Manifest elsewhere = trained().manifest, extended = elsewhere;
  elsewhere.options.emplace_back("device", "cuda:0");
  elsewhere.options.emplace_back("any_order", "true");
  CHECK(course_of(elsewhere).steps.size() == 3);
  // Steps logged before an extension belong to the training if they had the options that the extension names.
  extended.earlier = "to step 1 with --lr 0.5 --steps 1";
  CHECK(course_of(extended).steps.at(0).loss == 8);
  for (const char* another :
       {"to step 1 with --lr 0.25 --steps 1", "to step 1 with --lr 0.55", "to step 1 with --clip 0.5"}) {
    extended.earlier = another;
    CHECK(course_of(extended).steps.empty());
  }
}

TEST_CASE("log: of a log a training keeps other trainings, its own steps up to one, and no half line") {
  const std::string manifest = log_manifest(trained().manifest), ours = manifest + step(1) + step(2),
                    theirs = log_manifest(another_rate()) + step(7) + step(8),
                    beyond = step(3) + log_evaluation({3, 0.25, 3, 4}, Input::text);
  const auto kept = [&](const std::string& log, int up_to = 2) {
    std::istringstream in(log);
    return log.substr(0, static_cast<size_t>(logged_bytes(in, trained().manifest, up_to)));
  };
  CHECK(kept(theirs + ours + beyond) == theirs + ours);
  CHECK(kept(theirs + ours + "{\"step\"") == theirs + ours);
  CHECK(kept(ours + beyond + theirs) == ours + beyond + theirs);
  CHECK(kept(theirs + ours + beyond + ours) == theirs + ours);
  CHECK(kept(theirs + "half") == theirs);
  CHECK(kept("").empty());
  CHECK(kept(theirs + ours + beyond, 0) == theirs + manifest);
  // With other initial weights, or extended, it is another training; an invalid manifest belongs to another one, too.
  Manifest from_weights = trained().manifest, extended = from_weights;
  from_weights.init_sha256 = "sha256:ab";
  extended.earlier = "to step 1 with --steps 1";
  for (const std::string& another :
       {log_manifest(from_weights), log_manifest(extended), std::string("{\"manifest\":5}\n"),
        std::string("{\"manifest\":{\"options\":[1],\"data_sha256\":5}}\n")})
    CHECK(kept(another + step(7), 0) == another + step(7));
  // If the last line of another training's log lacks only its newline, it stays.
  const std::string open_end = theirs.substr(0, theirs.size() - 1);
  CHECK(kept(open_end) == open_end);
}

TEST_CASE("log: a log has the manifest first, a line per step with every run of the phase, and the verdict last") {
  const ProofResult proof = synthetic_proof(50);
  const json first = json::parse(log_manifest(proof.manifest));
  CHECK(first["manifest"]["options"]["steps"] == 50);
  const StepInfo info{Phase::training, 7, 50, proof.reference.losses[6], 1e-15, 1e-15, 1e-3, 3.5, 0.1, proof};
  const std::string line = log_step(info);
  CHECK(line.find('\n') == line.size() - 1);
  const json step = json::parse(line);
  CHECK(step["step"] == 7);
  CHECK(step["loss"] == proof.reference.losses[6]);
  REQUIRE(step["runs"].size() == 7);  // four controls, three forms
  CHECK(step["runs"][4]["run"] == "rms_norm");
  CHECK(step["runs"][4]["weight_deviation"] == proof.runs[0].deviations.weight[6]);
  const StepInfo late{Phase::negative, 7, 20, 1, 0, 0, 1e-3, 3.5, 0.1, proof};
  const json negative = json::parse(log_step(late));
  REQUIRE(negative["runs"].size() == 2);
  CHECK(negative["runs"][1]["run"] == "crms_norm compressed_plain");
  CHECK(json::parse(log_verdict(proof))["verdict"] == "Equivalent");
}
