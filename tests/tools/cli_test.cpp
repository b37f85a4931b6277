// The command line: every misuse is one line on stderr and exit code 2, files that cannot be written are 4, help and
// version are 0.
#include "tests/support/catch.h"
#include "tests/tools/child.h"

#include <algorithm>

using namespace isonorm;

namespace {

bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

void check_one_line(const ChildResult& r, int code, const std::string& start, const std::string& names) {
  INFO(r.err);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  CHECK(r.err.rfind(start, 0) == 0);
  CHECK(contains(r.err, names));
}

}  // namespace

TEST_CASE("cli: help and version are no errors") {
  const ChildResult help = run_child({"--help"});
  CHECK(help.code == 0);
  for (const char* verb : {"prove", "train", "explain", "table", "experiment", "convert", "verify"})
    CHECK(contains(help.out, verb));
  for (const char* verb :
       {"prove", "train", "explain", "table", "experiment", "convert", "verify", "compare", "audit"}) {
    const ChildResult of_verb = run_child({verb, "--help"});
    CHECK(of_verb.code == 0);
    CHECK_FALSE(contains(of_verb.out, "{false}"));  // what a flag is bound to is no user's business
  }
  for (const std::vector<std::string>& a :
       std::vector<std::vector<std::string>>{{"--version"}, {"prove", "--version"}}) {
    const ChildResult version = run_child(a);
    CHECK(version.code == 0);
    CHECK(version.out.rfind("isonorm ", 0) == 0);
  }
  const std::string prove = run_child({"prove", "--help"}).out;
  for (const char* option :
       {"--model",        "--data",  "--forms",     "--optimizer",  "--lr",          "--warmup",
        "--weight-decay", "--clip",  "--steps",     "--batch",      "--width",       "--depth",
        "--heads",        "--patch", "--context",   "--affine",     "--controls",    "--dtype",
        "--eps",          "--seed",  "--threads",   "--report",     "--json",        "--log",
        "--quiet",        "--help",  "--version",   "--head-width", "--mlp-width",   "--activation",
        "--positions",    "--tied",  "--mean-pool", "--no-bias",    "--certificate", "--architectures"})
    CHECK(contains(prove, option));
}

TEST_CASE("cli: usage errors exit with 2 and name what is wrong") {
  check_one_line(run_child({}), 2, "isonorm: ", "verb");
  check_one_line(run_child({"walk"}), 2, "isonorm: ", "walk");
  check_one_line(run_child({"prove", "--speed", "9"}), 2, "isonorm prove: ", "not expected: --speed 9; see");
  check_one_line(run_child({"train", "a", "--width", "8", "b", "--c=3"}), 2,
                 "isonorm train: ", "not expected: a b --c=3; ");
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--lr", "fast"}, "--lr"},
      {{"--lr", "-1"}, "--lr"},
      {{"--lr", "nan"}, "--lr"},
      {{"--lr", "0"}, "--lr"},
      {{"--lr"}, "--lr"},
      {{"--steps", "0"}, "--steps"},
      {{"--steps", "1.5"}, "--steps"},
      {{"--steps", "99999999999"}, "--steps"},
      {{"--batch", "-3"}, "--batch"},
      {{"--warmup", "-1"}, "--warmup"},
      {{"--clip", "-0.5"}, "--clip"},
      {{"--weight-decay", "inf"}, "--weight-decay"},
      {{"--eps", "0"}, "--eps"},
      {{"--width", "1"}, "--width"},
      {{"--heads", "5"}, "5 heads"},
      {{"--heads", "0"}, "--heads"},
      {{"--heads", "5"}, "give head_width"},
      {{"--head-width", "-2"}, "--head-width: \"-2\""},
      {{"--mlp-width", "-1"}, "--mlp-width: \"-1\""},
      {{"--activation", "step"}, "gelu|gelu_tanh|relu|silu|swiglu"},
      {{"--positions", "absolute"}, "learned|rotary|none|rotary_halves"},
      {{"--positions", "rotary", "--heads", "3", "--head-width", "5"}, "width 5 is odd"},
      {{"--tied"}, "--tied belongs to --model gpt"},
      {{"--rotary-base", "100"}, "--rotary-base belongs to --positions rotary or rotary_halves"},
      {{"--no-norm-bias"}, "--no-norm-bias belongs to --affine"},
      {{"--model", "gpt", "--data", "x", "--mean-pool"}, "--mean-pool belongs to --model vit"},
      {{"--forms", "rms_norm,layer_norm"}, "layer_norm is the reference"},
      {{"--depth", "0"}, "--depth"},
      {{"--patch", "0"}, "--patch"},
      {{"--context", "9"}, "--context"},
      {{"--model", "rnn"}, "vit|gpt|translator"},
      {{"--model", "gpt"}, "--data"},
      {{"--dtype", "bf16"}, "f32|f64"},
      {{"--optimizer", "newton"}, "adamw"},
      {{"--forms", "rms_norm,batch_norm"}, "batch_norm"},
      {{"--against", "gpu"}, "--against: \"gpu\" is no device, expected cpu, cuda or cuda:N"},
      {{"--against", "cpu"}, "--against: cpu is where the reference is trained"},
      {{"--certificate", "--against", "cuda"}, "--against has no meaning beside --certificate"},
      {{"--forms", "rms_norm,crms_norm,rms_norm"}, "twice"},
      {{"--controls", "0"}, "--controls"},
      {{"--threads", "0"}, "--threads"},
      {{"--seed", "-1"}, "--seed"},
      {{"--seed", "18446744073709551616"}, "--seed"},

      {{"stray"}, "stray"}};
  for (const auto& [arguments, name] : wrong) {
    std::vector<std::string> all = {"prove"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    check_one_line(run_child(all), 2, "isonorm prove: ", name);
  }
}

TEST_CASE("cli: output files are checked before the work begins") {
  for (const std::string verb : {"prove", "train"})
    for (const char* option : {"--json", "--report", "--log"}) {
      const std::string who = "isonorm " + verb + ": ";
      check_one_line(run_child({verb, option, "/no/such/folder/file"}), 4, who, "/no/such/folder/file");
      check_one_line(run_child({verb, option, "/tmp"}), 4, who, "/tmp");
    }
  check_one_line(run_child({"train", "--checkpoint", "/no/such/folder/file"}), 4, "isonorm train: ", "/no/such/folder");
  check_one_line(run_child({"prove", "--json", "x", "--log", "x"}), 2, "isonorm prove: ", "--log");
}

TEST_CASE("cli: explain prints a norm with its numbers") {
  const ChildResult r = run_child({"explain", "layer_norm", "1,2,3"});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(contains(r.out, "(-1.22474, 0, 1.22474)") != contains(r.out, "(-1.22473, 0, 1.22473)"));
  CHECK(run_child({"explain", "rms_norm", "-1, 2,3e0", "--grad", "-1,0,1"}).code == 0);
  CHECK(run_child({"explain", "crms_norm", "0.5"}).code == 0);
  CHECK(run_child({"explain", "crms_isometric", "0.5,-1"}).code == 0);
  check_one_line(run_child({"explain", "rms_norm", "0,0", "--eps", "0"}), 3, "isonorm explain: a row of ",
                 "mean square 0");
  check_one_line(run_child({"explain", "batch_norm", "1,2"}), 2, "isonorm explain: ", "batch_norm");
  check_one_line(run_child({"explain", "rms_norm", "1,two"}), 2, "isonorm explain: ", "two");
  check_one_line(run_child({"explain", "rms_norm", "1,,2"}), 2, "isonorm explain: ", "not a finite number");
  check_one_line(run_child({"explain", "rms_norm", "nan"}), 2, "isonorm explain: ", "nan");
  check_one_line(run_child({"explain", "rms_norm", "1,2", "--grad", "1"}), 2, "isonorm explain: ", "--grad");
  check_one_line(run_child({"explain", "rms_norm"}), 2, "isonorm explain: ", "ROW");
}

TEST_CASE("cli: a full disk behind standard output is an error") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"explain", "rms_norm", "1,2"}, {"--help"}, {"--version"}, {"prove", "--help"}}) {
    const ChildResult r = run_child(arguments, {.close_stdout = true});
    CHECK(r.code == 4);
    CHECK(contains(r.err, "standard output"));
  }
}
