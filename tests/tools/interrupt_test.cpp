// Ctrl-C while a file or a folder is written removes the unfinished file or folder.
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
  // The file has 80 MB, so that writing it takes longer than seeing that it has begun.
  nn::Gpt model({.vocab = 40'000,
                 .context = 8,
                 .head_bias = false,
                 .transformer = {.width = 256, .depth = 1, .heads = 2, .affine = true}});
  training::save_model(f / "in", model);
  const int64_t files = f.files();
  for (const auto& [line, signal] : {std::pair{"perturb @in @out", SIGINT},
                                     {"perturb @in @out", SIGTERM},
                                     {"export @in @out", SIGINT},
                                     {"export @in @out.onnx", SIGHUP},
                                     {"export @in @out.gguf", SIGXCPU}}) {
    INFO(line);
    const ChildResult r = f.run(line, {.interrupt_when = [&] { return writes_one(f); }, .signal = signal});
    CHECK(r.code == 128 + signal);
    CHECK(f.files() == files);
    CHECK_FALSE(writes_one(f));
  }
}
