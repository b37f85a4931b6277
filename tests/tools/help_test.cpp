// --help and the manual pages: widths, groups, names of values, examples.
#include <cstdlib>
#include <filesystem>

#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

Words lines_of_text(const std::string& text) {
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

Words verbs(const Folder& f) {
  Words all;
  const Words lines = lines_of_text(f.succeeds("--help").out);
  for (auto at = std::ranges::find(lines, "Verbs:") + 1; at != lines.end() && !at->empty(); ++at)
    if (at->size() > 2 && (*at)[2] != ' ') all.push_back(f.words(*at).at(0));
  REQUIRE(all.size() > 20);
  return all;
}

// The commands under "Examples:". They are indented by two spaces.
Words examples(const Folder& f, const std::string& verb) {
  Words all;
  const Words lines = lines_of_text(f.succeeds(verb + " --help", {.environment = {"COLUMNS=300"}}).out);
  for (auto at = std::ranges::find(lines, "Examples:"); at != lines.end() && !at->empty(); ++at)
    if (at->starts_with("  isonorm ")) all.push_back(at->substr(2));
  return all;
}

}  // namespace

TEST_CASE("help: no line is longer than the terminal, than COLUMNS, or than 80") {
  const Folder f;
  for (const std::string& verb : verbs(f) + Words{""}) {
    INFO(verb);
    const auto check = [&](const ChildOptions& options, size_t width) {
      for (const std::string& line : lines_of_text(f.succeeds(verb + " --help", options).out)) {
        const bool word = line.find(' ', line.find_first_not_of(' ')) == line.npos;  // a single one may be longer
        if (line.size() > width && !word) FAIL_CHECK(line);
      }
    };
    check({}, 80);
    check({.environment = {"COLUMNS=60"}}, 60);
    if (verb == "train") check({.environment = {"TERM=xterm"}, .terminal = true, .columns = 100}, 100);
  }
}

TEST_CASE("help: a command in a note is on one line of a terminal of 80 columns") {
  const Folder f;
  CHECK(contains(f.succeeds("completion --help", {.environment = {"COLUMNS=80"}}).out,
                 "\nbash: source <(isonorm completion bash), in ~/.bashrc for every shell\n"));
}

TEST_CASE("help: values are FILE, FOLDER and N, and each verb has two examples") {
  const Folder f;
  for (const std::string& verb : verbs(f)) {
    INFO(verb);
    const std::string help = f.succeeds(verb + " --help").out, page = f.succeeds("man " + verb).out;
    for (const char* type : {" TEXT", " INT", " UINT", " FLOAT", "Excludes:"}) CHECK_FALSE(contains(help, type));
    CHECK(contains(help, "\nUsage: isonorm " + verb));
    CHECK(examples(f, verb).size() == 2);
    CHECK(contains(page, ".SH EXAMPLES\n.TP\n.B isonorm " + verb.substr(0, verb.find('-'))));
    CHECK(contains(help, "Exit codes: 0 "));
  }
}

TEST_CASE("help: train begins with examples and ten common options") {
  const Folder f;
  const Words lines = lines_of_text(f.succeeds("train --help").out);
  Words headings, common;
  for (const std::string& line : lines) {
    if (!line.empty() && line[0] != ' ' && line.ends_with(':')) headings.push_back(line);
    if (!headings.empty() && headings.back() == "Common options:" && line.starts_with("  --"))
      common.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  REQUIRE(headings.size() > 5);
  CHECK(headings[0] == "Examples:");
  CHECK(headings[1] == "Common options:");
  CHECK(headings.back() == "Help:");
  std::ranges::sort(common);
  CHECK(common == Words{"--batch", "--checkpoint", "--context", "--data", "--depth", "--form", "--lr", "--model",
                        "--steps", "--width"});
  const std::string help = f.succeeds("train --help", {.environment = {"COLUMNS=200"}}).out;
  CHECK(contains(
      help,
      "  --patience N            stop after N evaluations without a lower test loss; 0 (default): run all --steps\n"));
  CHECK(contains(help, "  --width N               hidden size: the width of the residual stream (default: 64)\n"));
  CHECK(contains(help, "; one of pre_ln, post_ln, "));
}

TEST_CASE("help: every example runs") {
  const Folder f;
  for (const char* file : {"README.md", "tests/fixtures/tokenizers/gpt2/tokenizer.json"})
    fs::copy(file, f / fs::path(file).filename().string());
  fs::copy("tests/fixtures/families/gpt2", f / "gpt2");
  fs::create_directory(f / "bin");
  fs::create_symlink(fs::absolute(ISONORM_PROGRAM), f / "bin/isonorm");
  // Examples run with fewer steps. An example that takes minutes gets --version, so that only its options are checked.
  const std::pair<const char*, const char*> less[] = {{"--steps 200", "--steps 2"},
                                                      {"--steps 400", "--steps 4"},
                                                      {"lr-find", "lr-find --steps 11 --width 16"},
                                                      {"--steps 100", "--steps 2 --width 8"},
                                                      {"--certificate", "--certificate --version"},
                                                      {"table --optimizers", "table --steps 2 --seeds 1 --optimizers"}};
  const Words order = {"train",    "lr-find", "info",  "evaluate", "sample",     "plot",       "convert", "verify",
                       "rotate",   "spec",    "hooks", "perturb",  "compare",    "audit",      "import",  "export",
                       "tokenize", "explain", "prove", "table",    "experiment", "completion", "man"};
  CHECK(order.size() == verbs(f).size());
  for (const std::string& verb : order)
    for (std::string command : examples(f, verb)) {
      for (const auto& [word, shorter] : less)
        if (const size_t at = command.find(word); at != command.npos)
          command.replace(at, std::string(word).size(), shorter);
      const std::string line =
          "cd " + f.path.string() + " && PATH=bin:$PATH && { " + command + "; } >>said 2>told </dev/null";
      const int status = std::system(("sh -c '" + line + "'").c_str());
      INFO(command << "\n" << read(f / "told"));
      CHECK((WEXITSTATUS(status) == 0 || (verb == "compare" && WEXITSTATUS(status) == 1) ||
             (verb == "prove" && WEXITSTATUS(status) == 5)));
    }
}
