#include "equivalence/table.h"

#include <algorithm>
#include <chrono>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "core/parallel.h"
#include "core/random.h"
#include "equivalence/criterion.h"
#include "equivalence/lockstep.h"
#include "equivalence/source.h"
#include "equivalence/wrong_training.h"

namespace isonorm::equivalence {
namespace {

constexpr double kRawMean = 0.15;  // of the raw weights: what projections take away is there

ProofOptions model_options(const TableOptions& o, int seed) {
  ProofOptions p;
  p.model = o.model;
  p.data = o.data;
  p.steps = o.steps;
  p.warmup = 0;
  p.batch = 4;
  p.width = 8;
  p.depth = 2;
  p.heads = 2;
  p.mlp = 16;
  p.context = 6;
  p.controls = o.controls;
  p.seed = static_cast<uint64_t>(seed);
  p.threads = o.threads;
  return p;
}

std::unique_ptr<nn::Module> initial_model(const ProofOptions& o, const ModelShape& shape) {
  manual_seed(o.seed);
  auto model = build_model(o, shape, nn::Stream(nn::StreamForm::layer_norm, o.width));
  NoGrad no_grad;
  for (const Tensor& p : model->parameters()) copy_into(p, p + kRawMean);
  return model;
}

Expectation observation(const RunResult& run) {
  return run.observed == Verdict::same ? Expectation::same : Expectation::different;
}

// One recipe and one seed: everything that theory says something about, in lockstep.
std::vector<RunResult> train(const TableOptions& o, const Recipe& recipe, int seed) {
  const ProofOptions p = with_recipe(model_options(o, seed), recipe);
  Source source(p);
  const auto initial = initial_model(p, source.shape());
  RunResult reference = record(raw_variant(nn::StreamForm::layer_norm));
  std::vector<RunResult> controls, runs;
  for (int c = 0; c < o.controls; ++c) controls.push_back(record(*reference.variant, static_cast<uint64_t>(c + 1)));
  for (const Variant& v : o.rows) {
    if (v.expectation(recipe.update) == Expectation::undefined) continue;
    runs.push_back(record(v));
    if (v.expectation(recipe.update) == Expectation::different) runs.back().expected = Verdict::different;
  }
  Lockstep all(p, source.shape(), *initial, reference, controls, runs);
  std::vector<RunResult> wrong = wrong_records(p);
  add_wrong(all, p, source.shape(), *initial, wrong, source.batch(kNegativeSteps));
  for (int t = 0; t < o.steps; ++t) all.step(source.batch(t), recipe.lr);
  for (RunResult& run : runs) {
    run.control = running_maximum(controls);
    run.reach = reach(wrong);
    judge(run, p.dtype);
  }
  return runs;
}

}  // namespace

void take_seed(Cell& cell, const RunResult& run, bool first) {
  const bool low = cell.expected == Expectation::different;  // the seed that differs least counts
  const auto merge = [&](double& kept, double value) {
    kept = first ? value : low ? std::min(kept, value) : larger(kept, value);
  };
  merge(cell.loss, run.loss_deviation);
  merge(cell.gradient, run.gradient_deviation);
  merge(cell.weight, run.weight_deviation);
  const auto control = [](double& kept, const std::vector<double>& values) {
    if (!values.empty()) kept = larger(kept, values.back());
  };
  control(cell.control_loss, run.control.loss);
  control(cell.control_gradient, run.control.gradient);
  control(cell.control_weight, run.control.weight);
  if (first || (cell.as_expected && !run.as_expected)) {
    cell.observed = observation(run);
    cell.reason = run.reason;
  }
  cell.as_expected = cell.as_expected && run.as_expected;
}

TableResult table(const TableOptions& o, const std::function<bool(const TableProgress&)>& progress) {
  check(o.steps > 0 && o.seeds > 0 && o.controls > 0, "table: ", o.steps, " steps, ", o.seeds, " seeds and ",
        o.controls, " controls, expected at least 1 of each");
  check(!o.rows.empty() && !o.columns.empty(), "table: ", o.rows.size(), " variants and ", o.columns.size(),
        " optimizers, expected at least 1 of each");
  if (o.threads > 0) set_num_threads(o.threads);
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  TableResult result;
  result.options = o;
  result.model = model_options(o, 1);
  result.manifest = manifest_of(result.model);
  result.manifest.data_sha256 = sha256_of_files(Source(result.model).files());
  for (const Variant& v : o.rows)
    for (const Recipe& r : o.columns) {
      const Expectation e = v.expectation(r.update);
      result.cells.push_back({.variant = v, .recipe = r, .expected = e, .observed = Expectation::undefined});
    }
  int done = 0;
  for (size_t c = 0; c < o.columns.size(); ++c)
    for (int seed = 1; seed <= o.seeds; ++seed) {
      const std::vector<RunResult> runs = train(o, o.columns[c], seed);
      auto run = runs.begin();
      for (size_t row = 0; row < o.rows.size(); ++row) {
        Cell& cell = result.cells[row * o.columns.size() + c];
        if (cell.expected != Expectation::undefined) take_seed(cell, *run++, seed == 1);
      }
      ++done;
      const double part = static_cast<double>(done) / static_cast<double>(o.columns.size() * o.seeds);
      if (progress && !progress({o.columns[c].title, seed, part, seconds()})) {
        result.interrupted = true;
        return result;
      }
    }
  result.as_expected =
      std::all_of(result.cells.begin(), result.cells.end(), [](const Cell& cell) { return cell.as_expected; });
  result.seconds = seconds();
  return result;
}

}  // namespace isonorm::equivalence
