// A form is a row: a fifth one, registered here and known nowhere else, goes through prove, table, convert and verify.
#include <fstream>
#include <numbers>

#include "equivalence/coordinates/parameter_map.h"
#include "equivalence/grid/grid.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/verify/file_conversion.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/temp_folder.h"

namespace {

using streams::Basis;
using streams::FormRow;
using streams::Map;
using streams::RegisteredForm;

// The discrete cosine basis (Ahmed et al. 1974): column k is sqrt(2/d) cos(pi k (2r + 1) / 2d), k = 1..d-1. `scale`
// multiplies column 1.
Tensor cosines(int64_t d, double scale) {
  std::vector<double> q;
  for (int64_t r = 0; r < d; ++r)
    for (int64_t k = 1; k < d; ++k)
      q.push_back(std::sqrt(2.0 / static_cast<double>(d)) * (k == 1 ? scale : 1) *
                  std::cos(std::numbers::pi * static_cast<double>(k * (2 * r + 1)) / static_cast<double>(2 * d)));
  return from_vector(q, {d, d - 1});
}

const Basis kCosine = {"cosine", [](int64_t d) { return cosines(d, 1); }},
            kSkew = {"skew", [](int64_t d) { return cosines(d, 1.25); }};
constexpr auto kToCosine = [](int64_t d) { return Map::isometric(d, kCosine); };
constexpr auto kToSkew = [](int64_t d) { return Map::isometric(d, kSkew); };

const FormRow kRow = {.name = "crms_cosine",
                      .norm = NormKind::crms_isometric,
                      .writer = kToCosine,
                      .reader = kToCosine,
                      .orthonormal = true},
              kWrong = {.name = "crms_skew",
                        .norm = NormKind::crms_isometric,
                        .writer = kToSkew,
                        .reader = kToSkew,
                        .orthonormal = true};

// Twelve steps of a small language model.
ProofResult proof_of(const std::string& form) {
  const TempFolder folder;
  const std::string path = folder / "words.txt";
  std::ofstream out(path);
  for (int i = 0; i < 3000; ++i) out << (i % 7 == 0 ? "norm " : i % 3 == 0 ? "stream " : "row ");
  out.close();
  TrainingOptions o{.model = {kGpt, {.width = 16, .depth = 1, .heads = 2}}, .data = path, .steps = 12, .batch = 6};
  o.model.fit({{"context", 12}});
  return prove({.training = o, .forms = {form}, .controls = 2});
}

}  // namespace

TEST_CASE("a registered form: its maps follow from its basis, and its options are written under its name") {
  const RegisteredForm form(kRow);
  CHECK(streams::form_named("crms_cosine") == form);
  CHECK(streams::centred_forms().back() == form);
  CHECK_THROWS_WITH(RegisteredForm(kRow), Contains("crms_cosine"));
  manual_seed(3);
  const Tensor w = randn({9, 4}, {DType::f64}), q = cosines(9, 1);
  const streams::Stream stream(form, 9);
  CHECK(largest(stream.write(w, 0) - matmul(transpose(q, 0, 1), w)) < 1e-14);
  CHECK(largest(stream.expand(stream.read(transpose(w, 0, 1))) - transpose(w - mean(w, {0}, true), 0, 1)) < 1e-14);
  const ModelFile file = file_of(small_gpt(), {.form = form});
  CHECK(file.description.at("model.form") == "crms_cosine");
  CHECK(ModelOptions(file.description).stream().form == form);
}

TEST_CASE("a registered form is proved, and a row whose basis is not orthonormal is found") {
  {
    const RegisteredForm form(kRow);
    const ProofResult r = proof_of("crms_cosine");
    CHECK(r.equivalent());
    CHECK(r.horizon.steps == 12);
  }
  const RegisteredForm wrong(kWrong);
  const ProofResult r = proof_of("crms_skew");
  CHECK_FALSE(r.equivalent());
  CHECK(r.runs[0].form == "crms_skew");
  CHECK(r.runs[0].verdict == Verdict::different);
}

TEST_CASE("a registered form has cells in the table, which come out as theory says of an orthonormal basis") {
  const RegisteredForm form(kRow);
  const Variant
      plain = {"f1", "cosine_plain", form, Stored::mapped, Projection::none, GradientRule::as_is, Projection::none},
      lifted = {"f2", "cosine_lifted", form, Stored::mapped, Projection::none, GradientRule::lifted, Projection::none};
  const TableResult r = table({.data = {},
                               .steps = 6,
                               .seeds = 1,
                               .controls = 2,
                               .rows = {raw_variant(form), plain, lifted},
                               .columns = {recipe("sgd"), recipe("adam")}});
  const std::vector<MaybeVerdict> expected = {Verdict::equivalent, Verdict::equivalent, Verdict::equivalent,
                                              Verdict::different,  Verdict::equivalent, Verdict::equivalent};
  REQUIRE(r.cells.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(r.cells[i].variant.name << " with " << r.cells[i].recipe.title << ": " << r.cells[i].reason);
    CHECK(r.cells[i].expected == expected[i]);
    CHECK(r.cells[i].observed == expected[i]);
  }
}

TEST_CASE("files are converted to a registered form and back, and verified") {
  const RegisteredForm form(kRow);
  manual_seed(8);
  for (const bool tied : {false, true})
    for (const DType dtype : {DType::f64, DType::f32}) {
      INFO(name_of(dtype) << (tied ? ", tied" : ""));
      const ModelFile file = file_of(small_gpt({.affine = true}, tied), {}, dtype), there = converted(file, form),
                      back = converted(there, Form::layer_norm), helmert = converted(there, Form::crms_isometric);
      CHECK(there.state.at("token.weight").shape() == Dims{11, 7});
      for (const ModelFile* other : {&there, &back, &helmert}) {
        const Verification v = verify_models(*other, file);
        INFO(v.sentence());
        CHECK(v.equivalent());
      }
      const Tensor& w = there.state.at("blocks.0.mlp.fc2.weight");
      const Tensor moved = w + randn(w.shape(), w.options()) * (64 * epsilon(dtype));
      CHECK_FALSE(
          verify_models(file, ModelFile{with_tensor(there.state, "blocks.0.mlp.fc2.weight", moved), there.description})
              .equivalent());
    }
}

TEST_CASE("a conversion to a row whose basis is not orthonormal is not verified") {
  const RegisteredForm wrong(kWrong);
  manual_seed(8);
  const ModelFile file = file_of(small_gpt({.affine = true}));
  const streams::Plan plan = streams::plan_of(*ModelOptions(file.description).build());
  FileConversion conversion(file.state, plan, wrong);
  REQUIRE(conversion.check([] { return true; }));
  CHECK_FALSE(conversion.exact().equivalent());
}

TEST_CASE("raw parameters are mapped to a registered form's by name, in both directions") {
  const RegisteredForm form(kRow);
  manual_seed(5);
  nn::Gpt raw = streams::make<nn::Gpt>(small_gpt());
  raw.to(DType::f64);
  const ParameterMap map = ParameterMap::mapped_storage(raw, streams::Stream(form, 8, Stored::mapped));
  const Tensor w = randn({8, 5}, {DType::f64}), q = cosines(8, 1);
  const Route route = *map.route("blocks.0.mlp.fc2.weight");
  CHECK(largest(route.forward(w) - matmul(transpose(q, 0, 1), w)) < 1e-14);
  CHECK(largest(route.adjoint(route.forward(w), w.shape()) - (w - mean(w, {0}, true))) < 1e-14);
}
