// Ctrl-C while a file or a folder is written leaves nothing of it.
#include <csignal>

#include "nn/gpt.h"
#include "tests/tools/small_run.h"
#include "training/model_file.h"

using namespace isonorm;
namespace fs = std::filesystem;

namespace {

bool writes_one(const Folder& f) {
  for (const auto& entry : fs::directory_iterator(f.path))
    if (contains(entry.path().filename().string(), ".tmp.")) return true;
  return false;
}

}  // namespace

TEST_CASE("a signal while a verb writes ends it and leaves no temporary file or folder") {
  const Folder f;
  // Of 160 MB: writing it takes longer than it takes to see that it has begun.
  training::save_model(f / "in",
                       nn::Gpt({.vocab = 80'000, .context = 8, .transformer = {.width = 256, .depth = 1, .heads = 2}}));
  const int64_t files = f.files();
  for (const char* line : {"perturb @in @out", "export @in @out", "export @in @out.onnx", "export @in @out.gguf"})
    for (const int signal : {SIGINT, SIGTERM}) {
      INFO(line);
      const ChildResult r = f.run(line, {.interrupt_when = [&] { return writes_one(f); }, .signal = signal});
      CHECK(r.code == 128 + signal);
      CHECK(f.files() == files);
      CHECK_FALSE(writes_one(f));
    }
}
