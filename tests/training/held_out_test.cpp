// The test pass against predictions counted by hand from the logits.
#include "streams/stream.h"
#include "training/records/held_out.h"

#include <cmath>
#include <fstream>

#include "autograd/grad_mode.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "training/model_options.h"
#include "training/source.h"

using namespace isonorm;
using namespace isonorm::training;

namespace {

// The predictions of two models for each held-out row, with the arg-max and the logarithm written out.
struct Counted {
  double loss = 0;
  int64_t predictions = 0, right = 0, differing = 0;
  Counted(const Source& source, nn::Module& a, nn::Module& b) {
    NoGrad no_grad;
    const size_t vocab = static_cast<size_t>(source.options().model.shape().vocab);
    for (int64_t i = 0; i < source.test_count(); ++i) {
      const Examples rows = source.test_rows(i, 1);
      const std::vector<int64_t> targets = rows.targets.to_vector<int64_t>();
      const std::vector<double> la = a(rows.inputs).to_vector<double>(), lb = b(rows.inputs).to_vector<double>();
      for (size_t t = 0; t < 7 && targets[t] != -100; ++t) {
        const double *row = la.data() + t * vocab, *other = lb.data() + t * vocab;
        double sum = 0;
        for (size_t c = 0; c < vocab; ++c) sum += std::exp(row[c]);
        loss += std::log(sum) - row[targets[t]];
        const auto best = std::max_element(row, row + vocab) - row;
        right += best == targets[t], ++predictions;
        differing += best != std::max_element(other, other + vocab) - other;
      }
    }
    loss /= static_cast<double>(predictions);
    REQUIRE(right > 0);
    REQUIRE(differing > 0);
  }
};

}  // namespace

TEST_CASE("test pass: loss, accuracy and differing predictions are measured on the held-out text") {
  const TempFolder folder;
  std::ofstream out(folder / "text");
  for (int i = 0; i < 2000; ++i) out << "abcd efg"[i * i % 7] << "xyz "[i % 4];
  out.close();
  const TrainingOptions o{
      .model = {kGpt, {.width = 8, .depth = 1, .heads = 2}, {{"context", 7}}}, .data = folder / "text", .seed = 3};
  const Source source(o);
  const int64_t windows = (400 - 1) / 7;
  REQUIRE(source.test_count() == windows);
  const std::unique_ptr<nn::Module> a = build_model(source.options(), {}), b = build_model(source.options(), {});

  const Counted counted(source, *a, *b);
  nn::Module* models[] = {a.get(), b.get()};
  int heard = 0;
  const auto pass =
      test_pass(source, models, [&](int batch, int batches) { return ++heard == batch && batch <= batches; });
  REQUIRE(pass);
  CHECK(heard == 1);
  CHECK(pass->predictions == 7 * windows);
  CHECK(counted.predictions == 7 * windows);
  CHECK(pass->scores[0].right == counted.right);
  CHECK(pass->accuracy(0) == static_cast<double>(counted.right) / (7 * windows));
  CHECK(std::abs(pass->scores[0].loss - counted.loss) < 1e-13 * counted.loss * (7 * windows));
  CHECK(pass->scores[0].differing == 0);
  CHECK(pass->scores[1].differing == counted.differing);
  CHECK(a->training());
  CHECK_FALSE(test_pass(source, models, [](int, int) { return false; }));
}

TEST_CASE("test pass: a held-out part shorter than a window tests nothing") {
  const TempFolder folder;
  std::ofstream(folder / "text") << "abcdefghijklmnopqrstuvwxyz";
  const TrainingOptions o{.model = {kGpt, {.width = 8, .depth = 1, .heads = 2}, {{"context", 7}}},
                          .data = folder / "text"};
  const Source source(o);
  CHECK(source.test_count() == 0);
  const std::unique_ptr<nn::Module> model = build_model(source.options(), {.form = streams::Form::rms_norm});
  nn::Module* models[] = {model.get()};
  const auto pass = test_pass(source, models);
  REQUIRE(pass);
  CHECK(pass->predictions == 0);
}

TEST_CASE("test pass: padding is not predicted") {
  TrainingOptions o;
  o.model = {kTranslator, {.width = 8, .depth = 1, .heads = 2}, {{"context", 7}}};
  o.letters = 4, o.seed = 3;
  const Source source(o);
  CHECK(source.options().model.shape().vocab == 7);
  const std::unique_ptr<nn::Module> a = build_model(source.options(), {}), b = build_model(source.options(), {});
  REQUIRE(source.test_count() > 100);
  const Counted counted(source, *a, *b);
  nn::Module* models[] = {a.get(), b.get()};
  const auto pass = test_pass(source, models, {});
  REQUIRE(pass);
  CHECK(pass->predictions == counted.predictions);
  CHECK(pass->scores[0].right == counted.right);
  CHECK(pass->scores[1].differing == counted.differing);
  CHECK(std::abs(pass->scores[0].loss - counted.loss) < 1e-6);  // f32 logits
}
