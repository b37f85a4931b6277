// A user's norms in proofs, the grid and the certificate: the expected verdicts follow from the measured invariances of
// the function, even if these differ from what the norm seems to have.
#include "lab/certificate/certificate.h"
#include "equivalence/grid/grid.h"
#include "equivalence/lockstep/prove.h"
#include "equivalence/text/grid_text.h"
#include "equivalence/text/proof_text.h"
#include "nn/gpt.h"
#include "tests/equivalence/room.h"
#include "training/from_outside.h"
#include "training/model_options.h"

namespace {

// x <- x + branch(F::norm(x)).
template <class F> struct Normed : nn::Connection {
  Normed(int64_t width, const nn::ConnectionOptions& o) : Connection(width, {.kind = o.kind}) {}
  Tensor read(nn::Residual& r) override { return F::norm(r.settle(), spec().kind, static_cast<double>(width())); }
  void join(nn::Residual& r, const Tensor& branch) override { r.pending = branch; }
};
template <class F> nn::Arrangement arrangement(const char* name) {
  return {name, nn::block_of<Normed<F>>, nn::last_of<Normed<F>>};
}

Tensor centred_where(NormKind kind, const Tensor& x) { return kind == NormKind::layer ? recentre(x, -1) : x; }
// The sum over whole rows, including the entry that crms_norm does not store.
Tensor whole_sum(const Tensor& entries, NormKind kind, const Tensor& last) {
  const Tensor s = sum(entries, {-1}, true);
  return kind == NormKind::crms ? s + last : s;
}

// Divides by 1 + root mean square, which depends only on the length of rows, so it is the same in all coordinates.
struct Soft {
  static Tensor norm(const Tensor& rows, NormKind kind, double width) {
    const Tensor x = centred_where(kind, rows);
    return x / (sqrt(whole_sum(square(x), kind, square(sum(x, {-1}, true))) / width) + 1.0);
  }
};
// Divides by 1 + mean |x|: a function of the row in the first three forms, but in the fourth form a function of its
// Helmert coordinates.
struct Absolute {
  static Tensor norm(const Tensor& rows, NormKind kind, double width) {
    const Tensor x = centred_where(kind, rows);
    return x / (whole_sum(abs(x), kind, abs(sum(x, {-1}, true))) / width + 1.0);
  }
};
// Subtracts no mean, so it depends on the means of writers and readers.
struct Uncentred {
  static Tensor norm(const Tensor& rows, NormKind, double width) {
    return rows / (sqrt(sum(square(rows), {-1}, true) / width) + 1.0);
  }
};

bool another(const Visible& v, Form form) { return v.another_function.contains(form); }

TableOptions grid(const nn::Arrangement& residual) {
  return {.connection = residual, .data = {}, .seeds = 1, .columns = {recipe("sgd"), recipe("adamw")}};
}

std::string expected(const TableResult& r, size_t column) {
  std::string signs;
  for (size_t row = 0; row < r.options.rows.size(); ++row) {
    const MaybeVerdict e = r.cell(row, column).expected;
    signs += e == Verdict::equivalent ? '=' : e == Verdict::different ? '!' : '-';
  }
  return signs;
}

// Like Soft, with an error of 1e-11 only in rms_norm, hidden by noise that changes with every call.
struct Noisy {
  static Tensor norm(const Tensor& rows, NormKind kind, double width) {
    static int calls = 0;
    return Soft::norm(rows, kind, width) * (1 + 1e-10 * ++calls + (kind == NormKind::rms ? 1e-11 : 0));
  }
};

}  // namespace

TEST_CASE("visible: gains make readers' means visible, and a tied head after them writers' means") {
  for (const ModelRow* model : kModels)
    for (const bool affine : {false, true})
      for (const bool tied : {false, true}) {
        TableOptions o;
        o.model = model, o.affine = affine, o.tied = tied, o.made = model == &kVit;
        if (tied && model == &kVit) continue;
        const Visible v = visible_of(o);
        INFO(model->name << affine << tied);
        CHECK(v.affine == affine);
        CHECK(v.readers_mean == affine);
        CHECK(v.writers_mean == (affine && tied));
        CHECK_FALSE(v.gradient_mean);
        for (Form form : streams::all_forms()) CHECK_FALSE(another(v, form));
      }
}

TEST_CASE("visible: the invariances of a user's norm are measured") {
  const Visible soft = visible_of(grid(arrangement<Soft>("soft"))),
                absolute = visible_of(grid(arrangement<Absolute>("absolute"))),
                uncentred = visible_of(grid(arrangement<Uncentred>("uncentred")));
  for (const Visible& v : {soft, absolute}) CHECK_FALSE((v.writers_mean || v.readers_mean));
  for (Form form : streams::centred_forms()) {
    CHECK_FALSE(another(soft, form));
    CHECK(another(absolute, form) == (form == Form::crms_isometric));
    CHECK(another(uncentred, form));
  }
  CHECK((uncentred.writers_mean && uncentred.readers_mean));
  CHECK_FALSE(soft.gradient_mean);
  CHECK(absolute.gradient_mean);  // the derivative of |x| is the sign, which is not centred
}

TEST_CASE("grid: a user's norms have the derived verdicts") {
  //                                                     a1234567 b c12345 d12
  const std::tuple<nn::Arrangement, const char*, const char*> cases[] = {
      {arrangement<Soft>("soft"), "=!======!======", "=!!!=!==!=!==!="},
      {arrangement<Absolute>("absolute"), "=!===!==!===!!!", "=!!!=!!=!=!=!!!"},
      {arrangement<Uncentred>("uncentred"), "-------!-!--!--", "-------!-!--!--"}};
  for (const auto& [residual, sgd, adamw] : cases) {
    const TableResult r = table(grid(residual));
    INFO(residual.name << ": " << closing(document_of({&r, 1})));
    CHECK(r.as_expected());
    CHECK(expected(r, 0) == sgd);
    CHECK(expected(r, 1) == adamw);
  }
}

TEST_CASE("prove: a form in which a user's norm is another function is different") {
  ProofOptions o;
  o.training.steps = 20, o.training.batch = 4;
  o.training.model = {
      kGpt, {.width = 8, .depth = 1, .heads = 2, .connection = arrangement<Absolute>("absolute")}, {{"context", 6}}};
  const ProofResult all = prove(o);
  CHECK(all.verdict == Verdict::different);
  CHECK_THAT(all.manifest.command, Contains("absolute (from outside)"));
  o.forms = {"rms_norm", "crms_norm"};
  CHECK(prove(o).equivalent());
  o.training.model.transformer().connection = arrangement<Uncentred>("uncentred");
  CHECK(prove(o).verdict == Verdict::different);
}

TEST_CASE("a row that calls itself by a listed name is from outside all the same") {
  const nn::Arrangement forged = arrangement<Uncentred>("pre_ln");
  CHECK_FALSE(listed(forged));
  CHECK(listed(nn::kPreLn));
  CHECK(listed(nn::kPostLn));
  CHECK(name_and_origin(forged) == "pre_ln (from outside)");
  OptimizerRow own = optimizer("adamw");
  CHECK_FALSE(listed(own));
  ModelRow model = kGpt;
  CHECK_FALSE(listed(model));
  Architecture a = architecture("gpt1");
  CHECK_FALSE(from_outside(a));
  CHECK(CertificateOptions().looks_at(a));
  a.optimizer = &own;
  CHECK(name_of(a) == "gpt1 (from outside)");
  CHECK(CertificateOptions().looks_at(a));  // the rounding errors of gradients do not depend on the optimizer
  a.connection = forged;
  CHECK_FALSE(CertificateOptions().looks_at(a));
  a = architecture("gpt1");
  a.model = &model;
  CHECK_FALSE(CertificateOptions().looks_at(a));
}

TEST_CASE("certificate: an architecture of one's own is trained, named, and not looked at where nothing predicts it") {
  CertificateOptions o;
  Architecture soft = architecture("gpt1"), absolute = soft;
  soft.name = "soft", soft.connection = arrangement<Soft>("soft_norm");
  absolute.name = "absolute", absolute.connection = arrangement<Absolute>("absolute_norm");
  o.negative_controls.resize(1), o.resolved.resize(1), o.steps = 24;
  o.architectures = {soft};
  const CertificateResult r = certify(o);
  INFO(closing(document_of(r)));
  CHECK(r.equivalent());
  CHECK(r.gradients.empty());
  CHECK_THAT(closing(document_of(r)), Contains("1 architecture (from outside: soft) trains") &&
                                          Contains("not looked at at single points: soft") &&
                                          !Contains("gradients of"));
  CHECK_THAT(document_of(r).tables.at(2).rows.at(0).at(0).text, Contains("connections soft_norm (from outside)"));
  o.architectures = {absolute};
  const CertificateResult refuted = certify(o);
  CHECK(refuted.verdict == Verdict::different);
  CHECK_THAT(refuted.reason, Contains("absolute (from outside) in f64: crms_isometric came out different"));
}

TEST_CASE("from outside: what does not compute the same twice is refused, since it would widen its own bound") {
  Architecture noisy = architecture("gpt1");
  noisy.name = "noisy", noisy.connection = arrangement<Noisy>("noisy");
  CHECK_THROWS_WITH(train_architecture(noisy, DType::f64, 20, 4, 1), Contains("does not repeat itself"));
}

TEST_CASE("from outside: a row that is incomplete or impossible is named in one line") {
  const auto trained = [](const std::function<void(TrainingOptions&)>& change) {
    TrainingOptions o = training_options(architecture("gpt1"), DType::f64, 1);
    change(o);
    initial_model(o), build_optimizer(o, {});
  };
  OptimizerRow nothing{.name = "nothing", .make = nullptr},
      none{.name = "none", .make = [](const TrainingOptions&, const std::vector<nn::NamedParameter>&) {
             return std::unique_ptr<optim::Optimizer>();
           }};
  ModelRow bare{.name = "bare", .title = "Bare", .noun = "bare model", .input = Input::text};
  const std::pair<std::function<void(TrainingOptions&)>, const char*> wrong[] = {
      {[&](auto& o) { o.optimizer = &nothing; }, "the row nothing lacks"},
      {[&](auto& o) { o.optimizer = &none; }, "optimizer: make() of the row none returned null"},
      {[&](auto& o) { o.optimizer = nullptr; }, "there is no optimizer"},
      {[&](auto& o) { o.model = bare; }, "the row bare has no defaults"},
      {[&](auto& o) {
         o.model.transformer().connection = {"empty", nullptr, nullptr};
       },
       "the row empty lacks"}};
  for (const auto& [change, says] : wrong) CHECK_THROWS_WITH(trained(change), Contains(says));

  TableOptions gains = grid(arrangement<Soft>("soft"));
  gains.affine = true;
  CHECK_THROWS_WITH(table(gains), "table: norms with a learned gain are required, but the norms of soft have none");
  CertificateOptions twice;
  twice.architectures = {architecture("gpt1"), architecture("gpt1")};
  CHECK_THROWS_WITH(certify(twice), "certificate: the architecture gpt1 is there twice");
  Architecture own = architecture("gpt2");
  own.connection = arrangement<Soft>("soft");
  CertificateOptions beside;
  beside.architectures = {own};
  CHECK(beside.trained_regimes().empty());  // the regimes are for the library's gpt2

  // A file cannot name connections that are not in the library's list, and must not use a listed name for others.
  nn::Gpt forged({.vocab = 5,
                  .context = 4,
                  .transformer = {.width = 8, .depth = 1, .heads = 2, .connection = arrangement<Soft>("pre_ln")}});
  CHECK_THROWS_WITH(describe(forged), "describe: the connections pre_ln (from outside) are none that a file can name");
}

TEST_CASE("from outside: pages and lists say so, and take no markup from a row") {
  OptimizerRow own = optimizer("adamw");
  TableOptions o = grid(arrangement<Soft>("<b>soft"));
  o.steps = 2, o.rows.resize(1);
  o.columns = {recipe("adamw")};
  o.columns[0].optimizer = &own;
  const TableResult r = table(o);
  CHECK(grid_table(r).columns[1] == "AdamW (from outside)");
  CHECK_THAT(to_html(document_of({&r, 1})), Contains("&lt;b&gt;soft (from outside)") && !Contains("<b>soft"));
}
