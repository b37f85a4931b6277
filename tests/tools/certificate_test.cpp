// isonorm prove --certificate as a person runs it, reduced to few architectures and steps.
#include "tests/tools/small_run.h"
#include "tools/verb.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("certificate: what is certified gives 0, tables, JSON and a report") {
  const Folder f;
  const std::string reduced = "prove --certificate --architectures gpt2,vit9 --steps 8 ";
  const ChildResult r = f.succeeds(reduced + "--json @c.json --report @c.html");
  CHECK_THAT(r.out, Contains("gpt2: width 24, 3 heads, GELU, learned, untied, plain") &&
                        Contains("tied head reads the compressed table") && Contains("gradients in bf16") &&
                        Contains("width 2, values only, in f32") && Contains("\nEquivalent: 2 architectures train"));
  CHECK_THAT(r.err, Contains("certificate 100 %") && Contains(" left  "));
  CHECK(f.json("c.json")["verdict"] == "equivalent");
  CHECK(f.json("c.json")["tables"].size() == 7);
  CHECK(std::filesystem::file_size(f / "c.html") > 20000);
  // The sentence alone.
  const ChildResult quiet = f.succeeds(reduced + "-q --threads 1 --seed 5");
  CHECK(quiet.out.starts_with("Equivalent: "));
  CHECK(quiet.out.find('\n') == quiet.out.size() - 1);
  CHECK(quiet.err.empty());
}

TEST_CASE("certificate: what is certified gives 0, what is not 1, what is undecided 5") {
  using equivalence::Verdict;
  for (const auto& [verdict, code] :
       {std::pair{Verdict::equivalent, 0}, {Verdict::different, 1}, {Verdict::undecided, 5}})
    CHECK(tools::exit_code(verdict) == code);
}
