// isonorm prove --certificate, table and experiment as a person runs them, with few architectures and steps.
#include "tests/tools/small_run.h"
#include "tools/verb.h"

TEST_CASE("certificate: exit code 0 if certified, tables, JSON and a report") {
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

TEST_CASE("certificate: exit code 0 if certified, 1 if refuted, 5 if undecided") {
  using equivalence::Verdict;
  for (const auto& [verdict, code] :
       {std::pair{Verdict::equivalent, 0}, {Verdict::different, 1}, {Verdict::undecided, 5}})
    CHECK(tools::exit_code(verdict) == code);
}

TEST_CASE("table: a grid as theory says gives 0, the table, JSON and a report") {
  const Folder f;
  CHECK_THAT(f.succeeds("table --optimizers sgd,adam_l2 --steps 5 --seeds 2 --json @t.json --report @t.html").out,
             Contains("a5 projected_gradients_and_weights") && Contains("SGD") && Contains("n/a") &&
                 Contains("\nEquivalent. All 30 cells are as theory says: "));
  const auto json = f.json("t.json");
  CHECK(json["command"] == "isonorm table --optimizers sgd --optimizers adam_l2 --steps 5 --seeds 2");
  const auto& cells = json["cells"];
  REQUIRE(cells.size() == 30);
  for (const auto& cell : cells) CHECK(cell["observed"] == cell["expected"]);
  CHECK(std::filesystem::file_size(f / "t.html") > 5000);
  CHECK_THAT(f.succeeds("table --optimizers sgd --steps 3 --seeds 1 --markdown").out,
             Contains("|  | SGD |\n|---|---|\n| a1 ") && Contains(" 3 steps, 1 seed, f64."));
  // One step moves no loss yet, so what differs is undecided, and nothing contradicts.
  CHECK_THAT(f.gives(5, "table --optimizers sgd --steps 1 --seeds 1").out,
             Contains("\nUndecided: 15 of 15 cells") && !Contains(" ??\n"));
}

TEST_CASE("table: four grids, and what updates depend on") {
  const Folder f;
  CHECK_THAT(f.succeeds("table --full --optimizers sgd,adafactor --steps 2 --seeds 1 --json @t.json").out,
             Contains("gpt, affine norms") && Contains("gpt, tied head") && Contains("vit") &&
                 Contains("Adafactor runs with eps1 = 1e-08"));
  std::map<std::string, int> cells;
  const auto json = f.json("t.json");
  for (const auto& cell : json["cells"]) ++cells[cell["grid"]];
  for (const std::string grid : {"gpt", "gpt, affine norms", "gpt, tied head"}) CHECK(cells[grid] == 30);
  CHECK_THAT(f.succeeds("table --predicates --optimizers sgd,adam").out,
             Contains("writers_mean_unseen") && Contains("U(aG + bH, aw + bv) = a U(G, w) + b U(H, v)"));
  CHECK_THAT(f.succeeds("table --help").out, Contains("5 undecided") && Contains("eps1 =\n1e-08"));
}

TEST_CASE("experiment: the list names every claim with its source") {
  const Folder f;
  const std::string list = f.succeeds("experiment --list").out;
  CHECK(f.run("experiment").out == list);
  for (const char* part : {"invariance", "trajectories", "conversion", "controls", "1910.07467", "2305.14858"})
    CHECK(contains(list, part));
}

TEST_CASE("experiment: a confirmed claim is 0, with table, report, JSON and pictures") {
  const Folder f;
  const ChildResult r = f.succeeds("experiment invariance --seed 3 --report @r.html --json @r.json --svg @pictures");
  CHECK(r.err.empty());
  for (const char* part : {"rms_norm", "W + 1 c^T", "\nConfirmed", "It would have been refuted by "})
    CHECK(contains(r.out, part));
  const auto object = f.json("r.json");
  CHECK(object["experiment"] == "invariance");
  CHECK(object["verdict"] == "confirmed");
  CHECK(object["environment"]["seed"] == 3);
  CHECK(object["tables"][0]["heading"] == "Invariance of norms");
  CHECK(object["tables"][0]["rows"].size() > 2);
  CHECK(object["figures"].size() >= 1);
  for (const char* file : {"r.html", "pictures/invariance-table.svg", "pictures/invariance-gradient.svg"})
    CHECK(std::filesystem::file_size(f / file) > 1000);
}

TEST_CASE("experiment: faults are reported in one line before the work begins") {
  const Folder f;
  const struct {
    const char* words;
    int code;
    const char* says;
  } wrong[] = {{"alchemy", 2, "alchemy"},
               {"invariance --seed -1", 2, "--seed"},
               {"invariance --svg /proc/none/folder", 4, "/proc/none/folder: cannot be made a folder"},
               {"invariance --svg /dev/null", 4, "/dev/null: "},
               {"trajectories --data /no/such/file", 4, "/no/such/file"},
               {"invariance --data /no/such/file", 2, "--data"},
               {"invariance --seeds 100", 2, "--seeds"},
               {"controls --seeds 23", 2, "--seeds"},
               {"warm-up --device cuda", 2, "--device: warm-up computes on the CPU"},
               {"invariance --full", 2, "--full: invariance has one scale"},
               {"zoo --data text", 2, "--data: zoo reads no data"}};
  for (const auto& [words, code, says] : wrong) f.refuses(std::string("experiment ") + words, code, says);
}
