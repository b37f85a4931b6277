// The certificate: the properties of its architectures, forged parts that must make it fail, and its documents.
#include "lab/certificate/certificate.h"

#include <bit>
#include <map>
#include <set>

#include "core/system/parallel.h"
#include "equivalence/judge/criterion.h"
#include "tests/equivalence/room.h"
#include "tests/support/markup.h"

namespace {

CertificateOptions reduced() {
  return {.architectures = {architecture("gpt8"), architecture("vit1")},
          .negative_controls = {negative_controls().begin() + 9, negative_controls().begin() + 12},
          .resolved = {architecture("gpt8")},
          .steps = 8,
          .points = 6,
          .threads = 2};
}

// Made only once: the tests change copies.
const CertificateResult& certificate() {
  static const CertificateResult result = certify(reduced());
  return result;
}

// The features of an architecture by category, such as {"width", "odd"}. GPTs and ViTs have different categories for
// their output.
std::map<std::string, std::string> features(const Architecture& a) {
  const bool gpt = a.model == &kGpt, power = std::has_single_bit(static_cast<uint64_t>(a.width));
  return {{"model", a.model->title},
          {"width", a.width % 2 != 0 ? "odd"
                    : power          ? "power of two"
                                     : "even"},
          {"heads", a.heads == 1 ? "one" : "several"},
          {"activation", name_of(a.activation)},
          {"positions", name_of(a.positions)},
          {text("output of a ", a.model->title), gpt              ? a.other_output ? "tied" : "untied"
                                                 : a.other_output ? "mean pooling"
                                                                  : "class token"},
          {"norms", a.affine ? "affine" : "plain"}};
}

// Number of categories, among those that both have, in which the two differ.
int distance(const Architecture& a, const Architecture& b) {
  int differ = 0;
  const auto of_b = features(b);
  for (const auto& [respect, value] : features(a)) differ += of_b.contains(respect) && of_b.at(respect) != value;
  return differ;
}

// A change of a valid certificate, and a part of the message with which the changed one must fail.
using Forgery = std::pair<std::function<void(CertificateResult&)>, std::string>;

void check_fails(const std::vector<Forgery>& forgeries) {
  for (const auto& [forge, says] : forgeries) {
    CertificateResult forged = certificate();
    forge(forged);
    conclude(forged);
    CHECK(forged.verdict == Verdict::different);
    CHECK_THAT(closing(document_of(forged)), Contains("Different: ") && Contains(says));
  }
}

// Changes one deviation of one run; by default a deviation of the weights.
auto deviates(std::vector<Trajectory> CertificateResult::*parts, size_t part, size_t run, size_t step, double to,
              std::vector<double> Deviations::*what = &Deviations::weight) {
  return [=](CertificateResult& r) {
    Trajectory& t = (r.*parts)[part];
    (t.runs[run].deviations.*what)[step] = to;
    judge(t);
  };
}

}  // namespace

TEST_CASE("the architectures: at least 20, small, two features apart pairwise, each feature used twice") {
  const auto all = architectures();
  REQUIRE(all.size() >= 20);
  std::map<std::string, int> used;
  std::set<std::string> names;
  for (const Architecture& a : all) {
    INFO(a.name);
    CHECK(a.depth <= 2);
    CHECK(a.width <= 48);
    CHECK(names.insert(a.name).second);
    CHECK(training_options(a, DType::f64, 1).model.transformer().width == a.width);
    for (const auto& [respect, value] : features(a)) ++used[text(respect, ": ", value)];
    for (const Architecture& b : all) {
      INFO(b.name);
      if (&a != &b) CHECK(distance(a, b) >= 2);
    }
  }
  for (const char* feature :
       {"model: GPT", "model: ViT", "width: odd", "width: even", "width: power of two", "heads: one", "heads: several",
        "activation: gelu", "activation: relu", "activation: swiglu", "positions: learned", "positions: rotary",
        "output of a GPT: tied", "output of a GPT: untied", "output of a ViT: class token",
        "output of a ViT: mean pooling", "norms: affine", "norms: plain"}) {
    INFO(feature);
    CHECK(used[feature] >= 2);
  }
  CHECK(used.size() == 18);  // the list above is complete
}

TEST_CASE("an architecture is what its features say") {
  for (const Architecture& a : architectures()) {
    INFO(a.name);
    const TrainingOptions o = training_options(a, DType::f64, 1);
    const auto model = initial_model(o);
    std::set<std::string> names;
    for (const streams::NamedParameter& p : streams::named_parameters(*model)) names.insert(p.name);
    CHECK(names.contains("token.weight") == (a.model == &kGpt));
    CHECK((names.contains("position") || names.contains("position.weight")) == (a.positions == nn::Positions::learned));
    CHECK(names.contains("blocks.0.mlp.gate.weight") == (a.activation == nn::Activation::swiglu));
    CHECK(names.contains("norm.weight") == a.affine);
    CHECK(names.contains("blocks.0.attn.qkv.bias") == a.bias);
    CHECK(names.contains(a.model == &kGpt ? "head.weight" : "cls") != a.other_output);
    CHECK(names.contains("blocks.1.norm1.weight") == (a.affine && a.depth == 2));
  }
}

TEST_CASE("every negative control names an existing architecture, and guards a claim") {
  REQUIRE(negative_controls().size() >= 10);
  std::set<std::string> names, on;
  for (const NegativeControlRow& n : negative_controls()) {
    INFO(n.name);
    CHECK(names.insert(n.name).second);
    CHECK_NOTHROW(architecture(n.architecture));
    CHECK_NOTHROW(variant(n.variant));
    CHECK(std::string(n.claim).size() > 10);
    on.insert(n.architecture);
  }
  CHECK(on.size() >= 10);
}

TEST_CASE("a reduced certificate is certified, whatever the number of threads") {
  const CertificateResult& r = certificate();
  INFO(closing(document_of(r)));
  CHECK(r.equivalent());
  CHECK_FALSE(r.interrupted);
  REQUIRE(r.trajectories.size() == 4);
  CHECK(r.trajectories[1].steps == 8);
  for (const Trajectory& t : r.trajectories) CHECK(t.share_alone >= t.share);  // one control has the smaller D_c
  CHECK(r.trajectories[2].steps == 2);
  for (const Trajectory& t : r.trajectories) CHECK(t.horizon.steps == t.steps);
  REQUIRE(r.regimes.size() == 4);  // gpt8 and vit1, in f64 and f32
  CHECK(name_of(r.regimes[0]) == "vit1, stochastic depth 0.3");
  CHECK(name_of(r.regimes[3]) == "gpt8, batches in two parts");
  CHECK(r.regimes[0].runs[0].losses != r.trajectories[1].runs[0].losses);  // vit1 without the regime
  for (const Trajectory& t : r.regimes) CHECK(t.verdict == Verdict::equivalent);
  REQUIRE(r.gradient_errors.size() == 3);
  CHECK(r.gradient_errors[0].forms[0] > 4);  // sums along the stream reversed, too; else 2.5
  // A stored entry is off by at most 2^-8 = eps. In a gradient, many errors partly cancel.
  CHECK(r.gradient_errors[1].kept[0] > 0.02);
  CHECK(r.gradient_errors[1].kept[0] < 8);
  CHECK(r.gradient_errors[1].kept_plain > kMedianLimit * r.gradient_errors[1].kept[0]);
  for (const DTypeErrors& d : r.gradient_errors) {
    CHECK(d.forms[0] > 0.3);
    CHECK(d.forms[0] < 30);
    CHECK(d.plain > 4 * d.forms[0]);
  }
  const int threads = num_threads();
  CertificateOptions o = reduced();
  o.threads = 1;
  const CertificateResult again = certify(o);
  CHECK(num_threads() == threads);
  for (size_t i = 0; i < r.trajectories.size(); ++i)
    for (size_t f = 0; f < 3; ++f) {
      CHECK(again.trajectories[i].runs[f].losses == r.trajectories[i].runs[f].losses);
      CHECK(again.trajectories[i].runs[f].deviations.weight == r.trajectories[i].runs[f].deviations.weight);
    }
  for (size_t i = 0; i < r.gradients.size(); ++i) {
    for (size_t f : {0, 2})
      CHECK(largest_errors(again.gradients[i].forms[f]) == largest_errors(r.gradients[i].forms[f]));
    CHECK(again.gradient_verdicts[i].forms[2].median.value == r.gradient_verdicts[i].forms[2].median.value);
  }
}

TEST_CASE("a forged part makes the certificate fail, and is named") {
  using R = CertificateResult;
  const auto unseen = [](size_t at) {  // a negative control that comes out equivalent
    return [at](R& r) {
      NegativeControlResult& n = r.negatives[at];
      REQUIRE(n.detectable);
      n.run.deviations = r.trajectories[0].runs[0].deviations;
      for (auto values : {&Deviations::loss, &Deviations::gradient, &Deviations::weight})
        (n.run.deviations.*values).resize(20);
      judge(n);
    };
  };
  check_fails(
      {{deviates(&R::trajectories, 3, 1, 1, 1e-2), "vit1 in f32: crms_norm came out different"},
       {deviates(&R::trajectories, 0, 2, 5, 1e-9), "gpt8 in f64: crms_isometric came out different"},
       {deviates(&R::trajectories, 0, 0, 0, NAN, &Deviations::gradient), "gpt8 in f64: rms_norm"},
       {deviates(&R::regimes, 3, 1, 1, 1e-2), "gpt8, batches in two parts in f32: crms_norm came out different"},
       {unseen(0), "negative control in f64: one batch of another seed"},
       {unseen(3), "negative control in f32: one batch"},
       // A part is missing, duplicated, or in the wrong place.
       {[](R& r) { r.negatives.clear(); }, "nothing to compare"},
       {[](R& r) { r.gradients.pop_back(); }, "gradients: nothing to compare for vit1 in bf16"},
       {[](R& r) { r.gradients[1] = r.gradients[0]; }, "gradients: nothing to compare for vit1 in f64"},
       {[](R& r) { r.gradients.push_back(r.gradients[5]); }, "gradients: vit1 in bf16 is there twice"},
       {[](R& r) { r.trajectories.erase(r.trajectories.begin()); }, "trajectories: nothing to compare for gpt8 in f64"},
       {[](R& r) { r.width2.clear(); }, "values of width 2: nothing to compare"},
       {[](R& r) { r.regimes.pop_back(); }, "nothing to compare for gpt8, batches in two parts in f32"},
       {[](R& r) { std::swap(r.regimes[0], r.regimes[1]); },
        "nothing to compare for vit1, stochastic depth 0.3 in f64"}});
  CertificateResult forged = certificate();
  deviates(&R::trajectories, 0, 2, 5, 1e-9)(forged);
  CHECK(forged.trajectories[0].worst == 2);
  CHECK(forged.trajectories[0].share > 100);
}

TEST_CASE("gradients of one architecture, form, point or tensor that are wrong refute the certificate, in each dtype") {
  for (size_t i = 0; i < certificate().gradients.size(); ++i) {
    const PointErrors& right = certificate().gradients[i];
    const size_t f = 1 + i % 3, tensors = right.forms[f].size(), tensor = 3 * i % tensors, point = i % 6;
    const auto& verdict = certificate().gradient_verdicts[i].forms[f];
    const std::string where = text("gradients in ", name_of(right.dtype), ": ", right.architecture.name, ", "),
                      form = where + name_of_form(f), of_tensor = form + ": " + right.forms[f][tensor].name,
                      of_first = form + ": " + right.forms[f][0].name;
    INFO(form);
    const auto in = [i](auto&& change) { return [=](CertificateResult& r) { change(r.gradients[i]); }; };
    const auto at_point = [&](double wrong) { return in([=](auto& e) { e.forms[f][tensor].error[point] = wrong; }); };
    const double factor = verdict.always_seen / epsilon(right.dtype);  // a factor that is always detected
    check_fails({{at_point(400 * verdict.largest.value * right.forms[f][tensor].predicted[point]), form},
                 {at_point(NAN), form},
                 {at_point(INFINITY), form},
                 // One tensor at all points: four times the rounding errors.
                 {in([=](auto& e) {
                    for (size_t k = 0; k < 6; ++k) e.forms[f][tensor].error[k] = 4 * e.forms[f][tensor].predicted[k];
                  }),
                  of_tensor},
                 {in([=](auto& e) {
                    for (double& s : e.forms[f][0].scale) s += factor;
                  }),
                  of_first},
                 // One point is compared with itself; there are no tensors; a point is missing, or a tensor lacks one.
                 {in([=](auto& e) {
                    for (TensorErrors& t : e.forms[f]) t.error[point] = 0;
                  }),
                  form},
                 {in([=](auto& e) { e.forms[f].clear(); }), form},
                 {in([=](auto& e) { e.forms[f][tensor].error.pop_back(); }), form},
                 {in([=](auto& e) {
                    for (TensorErrors& t : e.forms[f]) t.scale.push_back(0);
                  }),
                  form},
                 // Pre-LN itself is wrong; plain RMSNorm passes.
                 {in([=](auto& e) {
                    for (double& v : e.forms[0][tensor].error) v *= 100;
                  }),
                  where + "Pre-LN itself"},
                 {in([=](auto& e) { e.plain = e.forms[1]; }), where + "plain RMSNorm"},
                 {in([=](auto& e) { e.plain.clear(); }), where + "plain RMSNorm"}});
  }
}

TEST_CASE("a certificate whose bound detects nothing is undecided; what is refuted counts before that") {
  CertificateResult forged = certificate();
  forged.trajectories[2].reach.weight = 1e-6;  // gpt8 in f32: smaller than the bound
  judge(forged.trajectories[2]);
  CHECK(forged.trajectories[2].margin < 1);
  conclude(forged);
  CHECK(forged.verdict == Verdict::undecided);
  CHECK_THAT(closing(document_of(forged)), Contains("Undecided: gpt8 in f32: rms_norm came out undecided"));

  // A form was compared with itself, or the controls did not move: the verdict must be undecided.
  for (bool controls : {false, true}) {
    forged = certificate();
    Deviations& d = forged.trajectories[1].runs[0].deviations;
    for (auto* values : {&d.loss, &d.gradient, &d.weight}) std::fill(values->begin(), values->end(), 0);
    if (controls)
      for (RunResult& c : forged.trajectories[1].controls) c.deviations.weight.assign(8, 0);
    judge(forged.trajectories[1]);
    conclude(forged);
    CHECK(forged.verdict == Verdict::undecided);
    CHECK_THAT(closing(document_of(forged)), Contains("vit1 in f64: rms_norm"));
  }
  check_fails({{[&](CertificateResult& r) {
                  r = forged;
                  r.gradients[0].forms[1][0].error[0] = NAN;
                },
                "gradients in f64: gpt8, rms_norm"}});
}

TEST_CASE("the verdict of an architecture's gradients is the same alone and in company") {
  const CertificateResult& both = certificate();
  for (size_t i = 0; i < 2; ++i)
    for (size_t d = 0; d < std::size(kLookedAt); ++d) {
      const PointErrors alone =
          point_errors(both.options.architectures[i], kLookedAt[d], Looked::gradients, both.options.points, 1);
      const ArchitectureVerdict v = judge(alone, both.options.points);
      CHECK(v.as_expected());
      for (size_t f = 1; f < kPointFormCount; ++f)
        CHECK(v.forms[f].median.value == both.gradient_verdicts[2 * d + i].forms[f].median.value);
    }
}

TEST_CASE("forged gradients of activations kept in bf16 make the certificate fail") {
  const auto kept = [](auto&& change) {  // gpt8 in f32
    return [=](CertificateResult& r) { change(r.gradients[2].kept); };
  };
  for (size_t form : {1u, 2u, 3u}) {
    check_fails({{kept([=](auto& forms) {
                    for (double& error : forms[form]) error *= 20;
                  }),
                  std::string("activations kept in bf16: ") + name_of_form(form)},
                 {kept([=](auto& forms) { forms[form].assign(6, 0); }), "compared with itself"},
                 {kept([=](auto& forms) { forms[form].pop_back(); }), "was not compared at 6 points"},
                 {kept([](auto& forms) { forms[0].clear(); }), "Pre-LN itself was not compared"}});
    for (double bad : {double(NAN), double(INFINITY), 1e3})
      check_fails({{kept([=](auto& forms) { forms[form][1] = bad; }), "activations kept in bf16"}});
  }
}

TEST_CASE("every regime names an existing architecture, and changes its training") {
  std::set<std::string> names;
  for (const Regime& regime : regimes()) {
    INFO(regime.name);
    CHECK(names.insert(regime.name).second);
    TrainingOptions o = training_options(architecture(regime.architecture), DType::f64, 1);
    const std::vector<std::pair<std::string, std::string>> before = option_list(o);
    regime.change(o);
    CHECK(option_list(o) != before);
  }
  CHECK(names.size() == 7);
}

TEST_CASE("a control that is not wrong comes out as not different") {
  NegativeControlRow right = negative_controls()[0];
  right.variant = "b";
  NegativeControlResult r = run_negative(right, DType::f64, 2, 1);
  CHECK_FALSE(r.as_expected);
  CHECK(r.run.verdict == Verdict::undecided);  // it deviates no further than rounding
  right.same_start = false;
  r = run_negative(right, DType::f64, 2, 1);
  CHECK_FALSE(r.as_expected);
  CHECK(r.excess <= 1);
}

TEST_CASE("a certificate as a document: its claims, a row for each measurement, and every run") {
  const CertificateResult& r = certificate();
  const reports::Document d = document_of(r);
  CHECK_THAT(closing(d), StartsWith("Equivalent: 2 architectures train") &&
                             Contains("the gradients of each architecture alone are exact to rounding"));
  CHECK_THAT(d.environment.command, Contains("isonorm prove --certificate --architectures gpt8,vit1 --steps 8"));
  std::map<std::string, std::vector<std::vector<reports::TextCell>>> rows;
  for (const reports::TextTable& t : d.tables) rows[t.heading] = t.rows;
  CHECK(rows["Claims, and the results that would have refuted them"][0][3].text == "yes");
  CHECK(rows["Trajectories"].size() == 4 + r.regimes.size());
  for (const auto& row : rows["Trajectories"]) CHECK(*row.back().value <= 1);  // share of the bound
  REQUIRE(rows["Negative controls"].size() == 6);
  for (const auto& row : rows["Negative controls"]) CHECK((*row[6].value >= 100 || row[2].text == "f32"));
  CHECK(rows["Detectable mistakes"].size() == 6);
  const auto& runs = rows["Every run"];
  REQUIRE(runs.size() == (4 + r.regimes.size()) * 3 + 6);
  CHECK(runs[0][8].text == "equivalent");
  CHECK(*runs[0][6].beside > 0);  // deviation of the controls' weights
  CHECK(*runs[6][3].value == 2);  // the horizon in f32
  CHECK(rows["Every architecture at random points"].size() == 6 * 4);
  const auto& errors = rows["Errors at random points"];
  CHECK(errors[0][7].text.empty());  // only measured for bf16
  CHECK(*errors[2][7].value > 0);
  CHECK(test::unstyled(to_html(d)) == std::set<std::string>());
}

TEST_CASE("a certificate stops when it is told to, and refuses options that make none") {
  CertificateOptions o = reduced();
  int calls = 0;
  const CertificateResult r = certify(o, [&](const CertificateProgress& p) {
    CHECK(p.step <= p.steps);
    return ++calls < 5;
  });
  CHECK(calls == 5);
  CHECK(r.interrupted);
  CHECK(r.verdict == Verdict::undecided);
  CHECK(closing(document_of(r)) == "Undecided: interrupted, nothing is concluded.");
  o.points = 0;
  CHECK_THROWS_WITH(certify(o), Contains("0 points"));
  CHECK_THROWS_WITH(architecture("gpt99"), Contains("gpt99") && Contains("vit11"));
}
