// Standard output: a result that is written there is alone, and work ends when the reader is gone.
#include "tests/tools/small_run.h"

using namespace isonorm;
namespace fs = std::filesystem;

TEST_CASE("an output that is standard output is alone there: everything else that is printed goes to standard error") {
  const Folder f;
  write_text(
      f / "tok.json",
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel",)"
      R"( "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "ByteLevel"}})");
  write_text(f / "ab", "abba");
  f.succeeds("train +small -q --steps 2 --checkpoint @c --log @l");
  f.succeeds("convert @c @rms --to rms_norm -q");
  // With bytes: those that a file gets. Without: JSON, whose times differ.
  const std::pair<const char*, bool> commands[] = {{"perturb @c OUT", true},
                                                   {"convert @c OUT --to rms_norm", true},
                                                   {"rotate @rms OUT --basis haar:1", true},
                                                   {"import tests/fixtures/families/olmo OUT", true},
                                                   {"tokenize @tok.json @ab OUT", true},
                                                   {"evaluate @c --data @text.txt --json OUT", false},
                                                   {"compare @c @c2 --json OUT", false},
                                                   {"plot @l --json OUT", false},
                                                   {"audit --checkpoint @c --json OUT", false},
                                                   {"train +small --steps 2 --json OUT", false},
                                                   {"lr-find +small --json OUT", false},
                                                   {"prove +small --steps 2 --json OUT", false}};
  fs::copy_file(f / "c", f / "c2");
  for (const auto& [line, bytes] : commands) {
    const auto with = [&, line = std::string(line)](const std::string& out) {
      return f.succeeds(std::string(line).replace(line.find("OUT"), 3, out));
    };
    INFO(line);
    const std::string status = with("@out").out;
    CHECK_FALSE(status.empty());
    for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
      const ChildResult r = with(name);
      if (bytes)
        CHECK(r.out == read(f / "out"));
      else
        CHECK(nlohmann::json::accept(r.out));
      CHECK_FALSE(r.err.empty());
    }
    fs::remove(f / "out");
  }
}

TEST_CASE("standard output that cannot be written ends the work when it happens, with 4") {
  const Folder f;
  f.succeeds("train +small -q --steps 2 --checkpoint @c");
  // More tokens than there is time for.
  for (const char* line : {"sample @c a --length 2000000000", "info @c", "man train", "completion bash"}) {
    const ChildResult r = f.gives(4, line, {.close_stdout = true});
    CHECK(contains(r.err, "standard output cannot be written: No space left on device\n"));
  }
}
