// Weights and losses that are NaN or infinite end every verb that computes with them: 6, one line, no number.
#include <cmath>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("a NaN or infinite weight ends evaluate and sample and audit and train --init with 6") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  for (const double value : {NAN, INFINITY, -INFINITY}) {
    Checkpoint c = load_checkpoint(f / "c");
    c.weights.at("head.weight").mutable_data<float>()[3] = static_cast<float>(value);
    save_checkpoint(f / "bad", c);
    const std::string says = f / "bad" + ": head.weight holds NaN or infinity";
    f.refuses("evaluate @bad --data @text.txt", 6, says);
    f.refuses("evaluate @bad --data @text.txt --json @r.json", 6, says);
    CHECK_FALSE(std::filesystem::exists(f / "r.json"));
    f.refuses("sample @bad a", 6, says);
    f.refuses("audit --checkpoint @bad", 6, says);
    f.refuses("train +small --steps 1 -q --init @bad", 6, "head.weight holds NaN or infinity");
  }
}

TEST_CASE("a loss or logits that are not finite end evaluate and sample and lr-find with 6") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  Checkpoint c = load_checkpoint(f / "c");
  float* weights = c.weights.at("head.weight").mutable_data<float>();
  for (int64_t i = 0; i < c.weights.at("head.weight").numel(); ++i) weights[i] *= 3e38F;
  save_checkpoint(f / "large", c);
  f.refuses("evaluate @large --data @text.txt", 6, "its loss is not a finite number");
  CHECK(contains(
      f.gives(6, "sample @large a").err,
      "isonorm sample: " + (f / "large") + ": generate: the largest logit is not finite: its weights are too"));
  f.refuses("lr-find +small --layer-scale 3e38 --no-final-norm -q", 6, "the loss of step 1 is not a finite number");
}
