// A training runs to its end even if nobody reads its output.
#include <thread>

#include "io/checkpoint.h"
#include "tests/support/full_output.h"
#include "tests/tools/small_run.h"

using namespace isonorm;

namespace {
const std::string kTrain = "train +small --steps 50 --evaluate-every 10 --checkpoint @c";
}

TEST_CASE(
    "a training on a terminal that is stopped by Ctrl-S goes on to its end; lines that stay and its result wait") {
  const Folder f;
  bool saved = false;
  const auto wait_for_checkpoint = [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    while (!(saved = std::filesystem::exists(f / "c")) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  const ChildResult r = f.run(
      kTrain, {.environment = {"TERM=xterm"}, .terminal = true, .meanwhile = wait_for_checkpoint, .stopped = true});
  CHECK(saved);
  CHECK(r.code == 0);
  CHECK(integer_at(load_checkpoint(f / "c").values, "step") == 50);
  size_t at = 0;  // lines that stay come in their order, and then the result
  for (const char* words : {"step 10/50  held-out", "step 20/50  held-out", "step 30/50  held-out",
                            "step 40/50  held-out", ", 50 steps: held-out loss "}) {
    CAPTURE(words, r.out);
    at = r.out.find(words, std::min(at, r.out.size()));
    CHECK(at != std::string::npos);
  }
}

TEST_CASE("a training whose stderr is full goes on to its end and prints its result") {
  const Folder f;
  const std::string result = f.succeeds(kTrain + " -q").out;
  for (const bool terminal : {true, false}) {
    const Folder other;
    const test::FullOutput full(terminal);
    const ChildResult r = other.run(kTrain, {.environment = {"TERM=xterm"}, .stderr_to = full.writer});
    CHECK(r.code == 0);
    CHECK(contains(r.out, result));
    CHECK(integer_at(load_checkpoint(other / "c").values, "step") == 50);
  }
}
