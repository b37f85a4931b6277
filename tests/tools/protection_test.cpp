// Every input of every verb is kept from every output, whatever either is called.
#include <unistd.h>

#include <algorithm>

#include "io/name_lock.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
namespace fs = std::filesystem;

namespace {

constexpr const char* kContent = "what somebody worked for\n";

// A command whose words are files of the folder where they begin with '@'.
struct Command {
  std::vector<std::string> words;
  std::vector<std::string> inputs;   // that it reads
  std::vector<std::string> outputs;  // options; "" is the last word itself
};

const std::vector<Command> kCommands = {
    {{"train", "--model", "gpt", "--data", "@a", "--init", "@b"},
     {"a", "b"},
     {"--json", "--report", "--log", "--checkpoint"}},
    {{"train", "--model", "translator", "--data", "@pairs"},
     {"pairs/source.txt", "pairs/target.txt"},
     {"--json", "--report", "--log", "--checkpoint"}},
    {{"train", "--model", "vit", "--data", "@images"},
     {"images/train-images-idx3-ubyte.gz", "images/t10k-labels-idx1-ubyte"},
     {"--json", "--report", "--log", "--checkpoint"}},
    {{"train", "--model", "vit", "--data", "@images"}, {"images/test_batch.bin"}, {"--json", "--checkpoint"}},
    {{"prove", "--model", "gpt", "--data", "@a"}, {"a"}, {"--json", "--report", "--log"}},
    {{"prove", "--model", "translator", "--data", "@pairs"}, {"pairs/target.txt"}, {"--json", "--report", "--log"}},
    {{"table", "--model", "gpt", "--data", "@a"}, {"a"}, {"--json", "--report"}},
    {{"experiment", "perplexity", "--data", "@a"}, {"a"}, {"--json", "--report"}},
    {{"convert", "@a", "--to", "rms_norm", "--spec", "@b", "--from", "layer_norm", "--reference", "@c"},
     {"a", "b", "c"},
     {""}},
    {{"convert", "@a", "--to", "rms_norm", "--data", "@pairs"}, {"a", "pairs/source.txt", "pairs/target.txt"}, {""}},
    {{"compare", "@a", "@b", "--map", "@c"}, {"a", "b", "c"}, {"--json"}},
    {{"audit", "--checkpoint", "@a"}, {"a"}, {"--json", "--report"}}};

// Names that are the file's, or that a replacement of `output` takes on its way.
std::vector<std::string> spellings(const Folder& f, const std::string& input) {
  const fs::path path = f.path / input;
  fs::create_symlink(path, f.path / "link");
  fs::create_symlink("link", f.path / "link to link");
  fs::create_hard_link(path, f.path / "hard");
  return {path.string(), (path.parent_path() / "." / path.filename()).string(),
          (path.parent_path() / ".." / path.parent_path().filename() / path.filename()).string(),
          f.file("link to link"), f.file("hard")};
}

}  // namespace

TEST_CASE("no verb writes over what it reads") {
  for (const Command& command : kCommands)
    for (const std::string& input : command.inputs) {
      const Folder f;
      for (const char* folder : {"pairs", "images"}) fs::create_directory(f.path / folder);
      for (const std::string& file : command.inputs) std::ofstream(f.path / file) << kContent;
      for (const std::string& name : spellings(f, input))
        for (const std::string& output : command.outputs) {
          std::vector<std::string> words = command.words;
          for (std::string& word : words)
            if (word[0] == '@') word = f.file(word.substr(1));
          if (output.empty())
            words.insert(words.begin() + 2, name);
          else
            words.insert(words.end(), {output, name});
          const ChildResult r = run_child(words);
          INFO(command.words[0] << " " << output << " " << name << ": " << r.err);
          CHECK(r.code == 2);
          CHECK(contains(r.err, "which would be lost"));
          CHECK(read(f.file(input)) == kContent);
        }
    }
}

TEST_CASE("names that an output takes on its way are kept from inputs, too") {
  const Folder f;
  const auto refused = [&](const std::string& input, const std::vector<std::string>& more) {
    const std::string path = f.file(input);
    std::ofstream(path) << kContent;
    std::vector<std::string> words = {"train", "--model", "gpt", "--data", path, "--steps", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const ChildResult r = run_child(words);
    INFO(input << ": " << r.err);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "which would be lost"));
    CHECK(read(path) == kContent);
    fs::remove(path);
  };
  refused("t.tmp.0123456789abcdef", {"--json", f.file("t")});
  refused("c.previous", {"--checkpoint", f.file("c")});
  refused("c.lock", {"--checkpoint", f.file("c")});
  const ChildResult svg =
      run_child({"experiment", "perplexity", "--data", f.file("perplexity-loss.svg"), "--svg", f.path.string()});
  CHECK(svg.code == 2);
  CHECK(run_child({"verify", f.file("a"), f.file("b")}, {.environment = {"ISONORM_PROFILE=" + f.file("b")}}).code == 2);
  // A result in the folder of data that is none of them is written, and written again.
  fs::create_directory(f.path / "pairs");
  for (const char* side : {"source.txt", "target.txt"}) {
    std::ofstream out(f.path / "pairs" / side);
    for (int i = 0; i < 40; ++i) out << "abcab"[i % 5] << "cb\n";
  }
  for (int i = 0; i < 2; ++i)
    CHECK(run_child({"train",
                     "--model",
                     "translator",
                     "--data",
                     f.file("pairs"),
                     "--json",
                     f.file("pairs/result.json"),
                     "--steps",
                     "1",
                     "--width",
                     "8",
                     "--depth",
                     "1",
                     "--heads",
                     "2",
                     "--context",
                     "8",
                     "--batch",
                     "2",
                     "--threads",
                     "1"})
              .code == 0);
}

TEST_CASE("a checkpoint has one training at a time; the second says who has it") {
  const Folder f;
  const auto arguments = small(f, "train", {"-q", "--steps", "2", "--checkpoint", f.file("c")});
  {
    const io::NameLock held(f.file("c"));
    const ChildResult second = run_child(arguments);
    INFO(second.err);
    CHECK(second.code == 4);
    CHECK(contains(second.err, "process " + std::to_string(getpid()) + " on "));
    CHECK(std::count(second.err.begin(), second.err.end(), '\n') == 1);
    CHECK_FALSE(fs::exists(f.file("c")));
  }
  CHECK(run_child(arguments).code == 0);
  CHECK_FALSE(fs::exists(f.file("c.lock")));
}
