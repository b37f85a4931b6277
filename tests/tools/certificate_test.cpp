// isonorm prove --certificate as a person runs it, reduced to few architectures and steps.
#include "tools/certificate.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/tools/child.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {
const std::vector<std::string> kReduced = {"prove", "--certificate", "--architectures", "gpt2,vit9", "--steps", "8"};

std::vector<std::string> reduced(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kReduced;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}
}  // namespace

TEST_CASE("certificate: what is certified gives 0, tables, JSON and a report") {
  const TempFolder folder;
  const ChildResult r = run_child(reduced({"--json", folder / "c.json", "--report", folder / "c.html"}));
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("gpt2: width 24, 3 heads, GELU, learned, untied, plain") &&
                        Contains("tied head reads the compressed table") && Contains("gradients in bf16") &&
                        Contains("width 2, values only, in f32") && Contains("\nCertified: 2 architectures train"));
  CHECK_THAT(r.err, Contains("certificate 100 %") && Contains(" left  "));
  std::ifstream file(folder / "c.json");
  const auto j = nlohmann::json::parse(file);
  CHECK(j["verdict"] == "Certified");
  CHECK(j["tables"].size() == 7);
  CHECK(std::filesystem::file_size(folder / "c.html") > 20000);
}

TEST_CASE("certificate: what is not certified gives 1, what is undecided 5") {
  equivalence::CertificateResult r;
  CHECK(tools::exit_code(r) == 5);
  r.verdict = equivalence::Verdict::different;
  CHECK(tools::exit_code(r) == 1);
  r.verdict = equivalence::Verdict::same;
  CHECK(tools::exit_code(r) == 0);
}

TEST_CASE("certificate: --quiet leaves the sentence") {
  const ChildResult r = run_child(reduced({"-q", "--threads", "1", "--seed", "5"}));
  INFO(r.out << r.err);
  CHECK(r.out.starts_with("Certified: "));
  CHECK(r.out.find('\n') == r.out.size() - 1);
  CHECK(r.err.empty());
}

TEST_CASE("certificate: options without a meaning beside it exit with 2 and are named") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--lr", "0.1"}, "--lr has no meaning beside --certificate"},
      {{"--model", "gpt"}, "--model"},
      {{"--forms", "rms_norm"}, "--forms"},
      {{"--dtype", "f32"}, "--dtype"},
      {{"--log", "x.jsonl"}, "--log"},
      {{"--affine"}, "--affine"},
      {{"--steps", "0"}, "--steps: 0"},
      {{"--controls", "0"}, "--controls: 0"},
      {{"--threads", "0"}, "--threads: 0"},
      {{"--architectures", "gpt99"}, "gpt99"},
      {{"--architectures", "gpt1,gpt1"}, "twice"}};
  for (const auto& [more, part] : wrong) {
    std::vector<std::string> arguments = {"prove", "--certificate"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ChildResult r = run_child(arguments);
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Contains("isonorm prove: ") && Contains(part));
  }
  CHECK(run_child({"prove", "--architectures", "gpt1"}).code == 2);
  CHECK(run_child(reduced({"--json", "/nowhere/c.json"})).code == 4);
}

TEST_CASE("certificate: Ctrl-C ends it with 130") {
  const ChildResult r = run_child({"prove", "--certificate"}, {.interrupt_after = "certificate 0 %"});
  CHECK(r.code == 130);
  CHECK_THAT(r.err, Contains("isonorm prove: interrupted"));
  CHECK(r.out.empty());
}
