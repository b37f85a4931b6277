// The report: complete, self-contained, and honest about a proof that failed.
#include <limits>

#include "equivalence/text/proof_report.h"
#include "equivalence/text/summary.h"
#include "reports/page.h"
#include "tests/equivalence/synthetic.h"
#include "tests/support/catch.h"
#include "tests/support/markup.h"
#include "training/records/manifest.h"
#include "training/records/training_report.h"

using namespace isonorm::equivalence;
using namespace isonorm::reports;
using namespace isonorm::training;
using isonorm::test::contains;
using isonorm::test::unstyled;
using isonorm::test::well_formed;

TEST_CASE("report: one file that loads nothing and runs nothing") {
  const std::string html = report_html(synthetic_proof());
  CHECK(well_formed(html));
  CHECK(unstyled(html) == std::set<std::string>());
  for (const char* part : {"<script", "http:", "https:", "src=", "@import", "url(", "<link"})
    CHECK_FALSE(contains(html, part));
  CHECK(contains(html, "prefers-color-scheme: dark"));
  CHECK(contains(html, "@media print"));
  CHECK(html.size() < 200000);
}

TEST_CASE("report: every run, figure and fact of the environment is in it") {
  const ProofResult proof = synthetic_proof();
  const std::string html = report_html(proof);
  for (const SummaryRow& row : summary_rows(proof)) {
    CHECK(contains(html, "<td data-column=\"run\">" + row.name + "</td>"));
    CHECK(contains(html, unbroken(row.weight)));
  }
  const Manifest& m = proof.manifest;
  for (const std::string& fact :
       {m.version, m.compiler, m.cpu, m.blas_core, m.blas_flavour, m.data_sha256, m.instructions})
    CHECK(contains(html, fact));
  CHECK(contains(html, repeat_command(proof.manifest)));
  CHECK(contains(html, "<strong>Equivalent</strong>"));
  size_t charts = 0;
  for (size_t at = 0; (at = html.find("role=\"img\"", at)) != std::string::npos; ++at) ++charts;
  CHECK(charts == 5);
}

TEST_CASE("report: a training's curve, evaluations, environment and command") {
  const TrainingResult training = synthetic_training();
  const std::string html = report_html(training);
  CHECK(well_formed(html));
  CHECK(unstyled(html) == std::set<std::string>());
  for (const char* part : {"<script", "http:", "https:", "src=", "url(", "<link", "nan"})
    CHECK_FALSE(contains(html, part));
  for (const std::string& part :
       {std::string("role=\"img\""), std::string("test loss"), std::string(">871 of 1000</td>"), std::string("87.10 %"),
        std::string("Gone on with after step 10"), training.manifest.cpu, repeat_command(training.manifest)})
    CHECK(contains(html, part));
  for (const char* heading : {"Learning rate", "Gradient norm", "Test accuracy, %"})
    CHECK(contains(html, "<h3>" + std::string(heading) + "</h3>"));
  CHECK_FALSE(contains(html, "perplexity"));
  CHECK(well_formed(report_html(TrainingResult{})));
}

TEST_CASE("report: a training that was gone on with has the curve of its log, too") {
  TrainingResult training = synthetic_training();
  // The curve begins at step 11 of 200: at 1000 * 10 / 199 across. With the log at the left edge.
  CHECK(contains(report_html(training), "<path class=\"other\" d=\"M50.3 "));
  for (int step = 0; step < 10; ++step)
    training.earlier.steps.push_back({.step = step + 1, .lr = 1e-3, .loss = synthetic_loss(step)});
  training.earlier.evaluations = {{10, 2.5, 250, 1000}};
  const std::string html = report_html(training);
  CHECK(contains(html, "<path class=\"other\" d=\"M0.0 "));
  CHECK(contains(html, "after step 10: what was before is that of the log"));
  CHECK(contains(html, ">250 of 1000</td>"));
  training.earlier.steps.pop_back();
  CHECK(contains(report_html(training), "of what was before the log has 9 steps"));
  training.evaluations.clear(), training.earlier = {};
  for (TrainingStep& s : training.steps) s.gradient_norm = {};
  CHECK_FALSE(contains(report_html(training), "<h3>Gradient norm"));
}

TEST_CASE("report: a failed, a NaN, an empty proof") {
  ProofResult proof = synthetic_proof(50);
  proof.runs[2].deviations.gradient[9] = std::numeric_limits<double>::quiet_NaN();
  proof.runs[2].losses[9] = std::numeric_limits<double>::quiet_NaN();
  conclude(proof);
  const std::string html = report_html(proof);
  CHECK(contains(html, "<strong>Not equivalent</strong>"));
  CHECK(contains(html, "class=\"bad\">different"));
  CHECK(contains(html, "gradient at step 10: NaN"));
  CHECK(well_formed(html));
  CHECK_FALSE(contains(html, "nan"));
  CHECK(well_formed(report_html(ProofResult{})));
}

TEST_CASE("report: an undecided proof, and a horizon before the end") {
  ProofResult proof = synthetic_proof(50);
  CHECK_FALSE(contains(report_html(proof), "where the upright line stands"));
  for (size_t step : {30u, 5u}) {
    proof.controls[0].deviations.weight[step] = 1;
    for (RunResult& run : proof.runs)
      if (run.expected == Verdict::same) run.control = {};
    conclude(proof);
    const std::string html = report_html(proof);
    CHECK(well_formed(html));
    CHECK(contains(html, step == 30 ? "<strong>Equivalent</strong>" : "<strong>Undecided</strong>"));
    CHECK(contains(html, "up to step " + std::to_string(step) + ", the horizon, where the upright line stands"));
  }
  CHECK(contains(report_html(proof), "<td data-column=\"observed\">undecided</td>"));
}
