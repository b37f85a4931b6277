// The JSON of a proof, read back by a parser: the promised fields, their types, and nothing that a strict reader would
// refuse.
#include "equivalence/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/equivalence/synthetic.h"
#include "tests/support/catch.h"

using namespace isonorm::equivalence;
using nlohmann::json;

TEST_CASE("json: a proof has every promised field") {
  const json j = json::parse(to_json(synthetic_proof()));
  CHECK(j["verdict"] == "equivalent");
  for (const char* key : {"version", "compiler", "flags", "blas_core", "blas_flavour", "cpu", "dtype", "data_sha256"}) {
    CHECK(j["manifest"][key].is_string());
    CHECK_FALSE(j["manifest"][key].get<std::string>().empty());
  }
  CHECK(j["manifest"]["threads"].get<int>() >= 1);
  CHECK(j["manifest"]["seed"] == 1);
  CHECK(j["manifest"]["options"]["lr"] == 0.001);
  CHECK(j["manifest"]["options"]["forms"] == "rms_norm,crms_norm,crms_isometric");
  for (const char* key : {"loss", "gradient", "weight"}) CHECK(j["control"][key].get<double>() > 0);
  REQUIRE(j["runs"].size() == 5);
  const std::set<std::string> parametrisations = {"raw", "projected_once", "compressed_plain"};
  for (const json& run : j["runs"]) {
    CHECK(parametrisations.contains(run["parametrisation"]));
    const bool negative = run["parametrisation"] != "raw";
    CHECK(run["expected"] == (negative ? "different" : "same"));
    CHECK(run["observed"] == run["expected"]);
    for (const char* key : {"loss_deviation", "gradient_deviation", "weight_deviation"})
      CHECK(run[key].is_number_float());
    CHECK(run["accuracy"].is_null() == negative);
    CHECK(run["differing_predictions"].is_null() == negative);
    CHECK(run["parameters"].is_number_integer());
    CHECK(run["losses"].size() == (negative ? 20 : 200));
  }
  CHECK(j["runs"][0]["form"] == "rms_norm");
  CHECK(j["reference"]["losses"].size() == 200);
}

TEST_CASE("json: a failed proof, NaN and text that is not UTF-8") {
  ProofResult proof = synthetic_proof(50);
  proof.runs[1].deviations.loss[3] = std::numeric_limits<double>::quiet_NaN();
  proof.manifest.options[1].second = "caf\xe9 \"quoted\"";
  conclude(proof);
  const json j = json::parse(to_json(proof));
  CHECK(j["verdict"] == "not equivalent");
  CHECK(j["runs"][1]["observed"] == "different");
  CHECK(j["runs"][1]["loss_deviation"].is_null());
  CHECK(j["manifest"]["options"]["data"] == "caf\xef\xbf\xbd \"quoted\"");
}

TEST_CASE("json: losses keep every bit") {
  const ProofResult proof = synthetic_proof(50);
  const json j = json::parse(to_json(proof));
  for (size_t t = 0; t < 50; ++t) CHECK(j["runs"][0]["losses"][t].get<double>() == proof.runs[0].losses[t]);
}

TEST_CASE("json: a log has the manifest first, a line per step with every run of the phase, and the verdict last") {
  const ProofResult proof = synthetic_proof(50);
  const json first = json::parse(log_manifest(proof));
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
  CHECK(json::parse(log_verdict(proof))["verdict"] == "equivalent");
}
