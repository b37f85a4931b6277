// The model that rounds: without rounding it is the library's model, and planted faults exceed its prediction of the
// rounding error.
#include "lab/probes/rounding_model.h"

#include "lab/certificate/negative_control.h"
#include "equivalence/judge/criterion.h"
#include "lab/probes/point_errors.h"
#include "tests/equivalence/room.h"

TEST_CASE(
    "without rounding the model written out once more has the library's gradients, in every architecture and form") {
  for (const Architecture& a : architectures()) {
    INFO(a.name);
    DrawnPoint point(a, DType::f64, 3);
    point.next();
    Trainee library(point.exact(), raw_variant(streams::Form::layer_norm));
    library.start_from(point.raw());
    library.differentiate(point.batch());
    for (streams::Form form : {streams::Form::layer_norm, streams::Form::rms_norm, streams::Form::crms_norm,
                               streams::Form::crms_isometric}) {
      RoundingModel model(point.exact(), form, point.raw(), Rounding());
      model.differentiate(point.batch());
      // The loss is a sum here and a mean in the library.
      const double rows = static_cast<double>(point.batch().targets.numel());
      CHECK(std::abs(model.loss() / rows - library.loss()) <= 1e-12 * library.loss());
      const std::vector<Pair> pairs = model.gradient_pairs(library);
      for (const Pair& p : pairs) CHECK(largest_entry(p.value * (1 / rows) - p.reference) <= 1e-11 * p.scale);
    }
  }
}

TEST_CASE("a point is redrawn if a ReLU is within rounding of its kink, and only then") {
  int redrawn = 0;
  for (const char* name : {"gpt1", "gpt9"}) {
    DrawnPoint coarse(architecture(name), DType::bf16, 1), fine(architecture(name), DType::f64, 1);
    redrawn += coarse.next();
    CHECK(fine.next() == 0);
  }
  CHECK(redrawn > 0);
  DrawnPoint smooth(architecture("gpt2"), DType::bf16, 1);
  CHECK(smooth.next() == 0);
}

TEST_CASE("predicted errors: a fifth model that rounds stays within what four predict, as the limits assume") {
  std::vector<double> ratios;
  for (const char* name : {"gpt4", "gpt7", "vit1", "vit10"}) {
    DrawnPoint point(architecture(name), DType::f32, 5);
    for (int k = 0; k < 3; ++k) {
      point.next();
      RoundingModel truth(point.exact(), streams::Form::layer_norm, point.raw(), Rounding());
      truth.differentiate(point.batch());
      std::vector<double> squares;
      for (int n = 0; n <= kPredictions; ++n) {
        const auto model = point.rounded_model(streams::Form::crms_norm);
        model->differentiate(point.batch());
        const std::vector<Pair> pairs = model->gradient_pairs(truth);
        squares.resize(pairs.size());
        for (size_t i = 0; i < pairs.size(); ++i)
          if (n < kPredictions)
            squares[i] += std::pow(deviation({pairs[i]}), 2) / kPredictions;
          else
            ratios.push_back(deviation({pairs[i]}) / std::sqrt(squares[i]));
      }
    }
  }
  std::sort(ratios.begin(), ratios.end());
  REQUIRE(ratios.size() > 100);
  CHECK(ratios[ratios.size() / 2] < kMedianLimit / 2);
  CHECK(ratios[ratios.size() / 2] > 0.5);
  CHECK(ratios.back() < kLargestLimit / 2);
}

TEST_CASE("a gradient in bf16, f32 or f64 that is off by a small factor, or not recentred, in one tensor is refused") {
  const struct {
    DType dtype;
    double factor;
  } faults[] = {{DType::bf16, 0.05}, {DType::f32, 1e-5}, {DType::f64, 1e-12}};
  for (const auto& [dtype, factor] : faults) {
    const PointErrors right = point_errors(architecture("gpt3"), dtype, Looked::gradients, 20, 2);
    REQUIRE(judge(right, 20).as_expected());
    int writers = 0;  // whose gradients plain RMSNorm does not recentre: one such writer is enough
    for (size_t t = 0; t < right.plain.size(); ++t) {
      if (right.plain[t].error == right.forms[1][t].error || right.plain[t].error[0] < 10 * right.forms[1][t].error[0])
        continue;
      PointErrors wrong = right;
      wrong.forms[1][t] = right.plain[t];
      CHECK_FALSE(judge(wrong, 20).as_expected());
      ++writers;
    }
    CHECK(writers > 0);
    for (size_t f = 1; f < kPointFormCount; ++f)
      for (size_t t = 0; t < right.forms[f].size(); ++t) {
        PointErrors wrong = right;
        for (double& s : wrong.forms[f][t].scale) s += factor / epsilon(dtype);
        INFO(name_of(dtype) << " " << wrong.forms[f][t].name);
        CHECK_FALSE(judge(wrong, 20).as_expected());
      }
  }
}

TEST_CASE(
    "a wrong eps is detected in f64 and not detectable in f32; the smallest detectable mistake is found in both "
    "dtypes") {
  const NegativeControlRow& eps = negative_controls()[11];
  REQUIRE(std::string(eps.name) == "eps 1e-6 for 1e-5");
  const NegativeControlResult exact = run_negative(eps, DType::f64, 2, 1),
                              f32 = run_negative(eps, DType::f32, 2, 1, &exact);
  CHECK(exact.as_expected);
  CHECK(f32.as_expected);
  CHECK_FALSE(f32.detectable);
  CHECK(f32.excess < kLeastExcess);
  NegativeControlResult strong = f32;  // the same outcome, although it should have been detected
  strong.foreseen = 3;
  judge(strong);
  CHECK_FALSE(strong.as_expected);

  const Architecture& a = architecture("vit5");
  for (NegativeControl mistake : kSizedMistakes) {
    const double x = smallest_detectable(mistake, a, DType::f64, 2, 1).smallest,
                 y = smallest_detectable(mistake, a, DType::f32, 2, 1).smallest;
    INFO(description(mistake));
    CHECK(x < 1e-7);
    CHECK(y > 1e3 * x);
    CHECK(y < 10);
  }
}
