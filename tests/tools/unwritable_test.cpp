// Outputs that cannot be written are refused before the first step; readers that go away and files that may not grow
// end a training saved, with one line and no half of a file.
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

// Each command would run for minutes. A verb that checks its outputs only after its work would exceed the time limit.
// OUT is the third word.
constexpr std::pair<const char*, const char*> kCommands[] = {
    {"prove +small --steps 1000000 -q", "--json --report --log"},
    {"train +small --steps 100000000 -q", "--json --report --log --checkpoint"},
    {"prove --certificate --steps 1000000 -q", "--json --report"},
    {"table --steps 1000000 -q", "--json --report"},
    {"experiment perplexity --full", "--json --report --svg"},
    {"audit --depth 1000", "--json --report"},
    {"convert @text.txt --to rms_norm", "OUT"},
    {"compare @text.txt @text.txt", "--json"}};

int64_t files_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

}  // namespace

TEST_CASE("outputs that cannot be written are refused before the work, by every verb") {
  const Folder f;
  std::string deep = f.path.string();
  while (deep.size() < 4080) deep += "/" + std::string(std::min<size_t>(200, 4080 - deep.size()), 'd');
  fs::create_directory(f.path / "folder");
  for (const auto& [line, outputs] : kCommands)
    for (const std::string& output : f.words(outputs)) {
      Words names = {f / std::string(256, 'x'), f / "text.txt/x"};
      // A log has no temporary name. A folder of pictures is made with its parents.
      if (output != "--log" && output != "--svg") names.push_back(f / std::string(235, 'x'));
      if (output != "--svg") names.insert(names.end(), {deep, f / "none/x", f / "folder"});
      for (const std::string& name : names) {
        Words words = f.words(line);
        words.insert(output == "OUT" ? words.begin() + 2 : words.end(), name);
        if (output != "OUT") words.insert(words.end() - 1, output);
        INFO(line << " " << output << " " << name.substr(0, 300));
        check_refusal(run_child(words), 4, words[0], name.size() < 100 ? name + ": " : "");
      }
    }
  CHECK(files_in(f.path) == 2);
  CHECK(files_in(f.path / "folder") == 0);
}

TEST_CASE("a training whose reader goes away ends as with Ctrl-C, saved") {
  const Folder f;
  const std::string train = "train +small --steps 100000000 --evaluate-every 50 --checkpoint @c";
  f.gives(130, train, {.hang_up_after = "step 50/"});
  CHECK(integer_at(load_checkpoint(f / "c").values, "step") >= 50);
  for (int signal : {SIGHUP, SIGXCPU, SIGUSR1, SIGUSR2}) {
    fs::remove(f / "c");
    f.gives(130, train, {.interrupt_after = "step 50/", .signal = signal});
    CHECK(fs::exists(f / "c"));
  }
}

TEST_CASE("a file that may not grow gives one line, and the training is saved") {
  const Folder f;
  const ChildOptions limited{.file_limit = 100'000};
  f.refuses("train +small -q --steps 1000000 --checkpoint @c --log @l", 4, "l: writing failed: File too large",
            limited);
  CHECK(integer_at(load_checkpoint(f / "c").values, "step") > 100);
  CHECK(files_in(f.path) == 5);  // text, two checkpoints, their options, log
  // A result of more than that is not begun.
  f.refuses("train +small -q --width 128 --steps 1 --checkpoint @d", 4, "there is no room for", limited);
  CHECK(files_in(f.path) == 5);
}

TEST_CASE("what files say of themselves does not speak to the terminal, nor fill it") {
  const Folder f;
  const auto says = [&](const std::string& line) {
    const ChildResult r = f.run(line);
    const std::string said = r.out + r.err;
    INFO(line << ": " << said.substr(0, 1000));
    CHECK(said.size() < 12'000);
    for (const char control : {'\x1b', '\x07', '\x9b'}) CHECK(said.find(control) == said.npos);
    return said;
  };
  const std::string train = "train +small --steps 2 --checkpoint ";
  f.succeeds(train + "@c");
  for (const std::string& value : {std::string("\x1b]0;owned\x07"), std::string(1'000'000, 'x')})
    for (const char* name : {"earlier", "lr", "connection", "step", "model.kind", "init"}) {
      INFO(name);
      Checkpoint c = load_checkpoint(f / "c");
      c.values[name] = value;
      save_checkpoint(f / "forged", c);
      for (const std::string& line :
           {train + "@forged", std::string("verify @forged @c"), std::string("audit --checkpoint @forged")})
        says(line);
    }
  const std::string evil =
      "w\x1b[31m\x07\xc2\x9b"
      "2J\n";
  for (const float value : {1, 2}) {
    TensorMap m;
    m.add(evil, from_vector<float>({value}, {1}));
    save_safetensors(f / std::to_string(static_cast<int>(value)), m, {{"isonorm.model", evil}});
  }
  CHECK(contains(says("compare @1 @2"), "w\\x1b[31m\\x07\\x9b2J "));
  CHECK_FALSE(says("verify @1 @2").empty());
}
