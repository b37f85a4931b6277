// Checkpoints of trainings with averaged weights (--ema).
#include "tests/tools/small_run.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("train --ema: whoever reads the checkpoint as a model is told that it is not what the test passes used") {
  const Folder f;
  const std::string trained =
      f.succeeds("train +small -q --steps 30 --lr 0.05 --ema 0.9 --checkpoint @c --ema-file @averages").out;
  f.succeeds("train +small -q --steps 3 --checkpoint @plain");
  const std::string told =
      "these are the weights of the last step, not the averages that the test passes of isonorm train "
      "--ema 0.9 used; isonorm train --ema-file FILE writes the averages\n";
  for (const std::string line : {"evaluate IN --data @text.txt", "sample IN abc -q --length 5", "export IN @out.onnx",
                                 "convert IN @out --to crms_norm -q"}) {
    INFO(line);
    const auto err = [&](const char* file) {
      return f.succeeds(std::string(line).replace(line.find("IN"), 2, file)).err;
    };
    CHECK_THAT(err("@c"), Contains("isonorm " + line.substr(0, line.find(' ')) + ": " + f / "c" + ": " + told));
    CHECK_THAT(err("@averages"), !Contains("averages that"));
    CHECK_THAT(err("@plain"), !Contains("averages that"));
  }
  // train prints the loss of the averages last. The loss of the weights is another number.
  const auto line_of = [&](const char* file) {
    const std::string out = f.succeeds(text("evaluate ", file, " --data @text.txt")).out;
    const size_t begin = out.find("held-out loss ");  // after how the data were read
    return out.substr(begin, out.find('\n', begin) - begin);
  };
  CHECK_THAT(trained, Contains(line_of("@averages")));
  CHECK(line_of("@c") != line_of("@averages"));
}
