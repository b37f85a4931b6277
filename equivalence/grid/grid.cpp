#include "equivalence/grid/grid.h"

#include <algorithm>
#include <deque>
#include <filesystem>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "core/random.h"
#include "core/system/parallel.h"
#include "core/system/stopwatch.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/lockstep.h"
#include "equivalence/lockstep/made_examples.h"
#include "equivalence/lockstep/negative_control.h"
#include "io/data/published_sets.h"
#include "io/sha256.h"
#include "streams/parametrize.h"
#include "training/model_options.h"
#include "training/source.h"

namespace isonorm::equivalence {
namespace {

training::TrainingOptions model_options(const TableOptions& o, int seed) {
  training::TrainingOptions p;
  p.model = training::ModelOptions(
      *o.model,
      {.width = 8, .depth = o.depth, .heads = 2, .mlp_width = 16, .affine = o.affine, .connection = o.connection});
  if (o.made) p.model.fit({.image = 14});
  p.model.fit({{"context", 6}, {"tied", o.tied}, {"head_bias", true}});
  p.data = o.data;
  p.steps = o.steps;
  p.warmup = 0;
  p.batch = 4;
  p.seed = static_cast<uint64_t>(seed);
  p.threads = o.threads;
  p.device = o.device;
  return p;
}

// The initial model and the batches of a seed, the same for every recipe.
class Start {
 public:
  Start(const TableOptions& o, int seed) : options_(model_options(o, seed)) {
    if (!o.made) options_ = source_.emplace(options_).options();
    manual_seed(options_.seed);
    initial_ = build_model(options_, {.form = streams::Form::layer_norm});
    NoGrad no_grad;
    for (const Tensor& p : initial_->parameters()) copy_into(p, p + kRawMean);
  }

  const training::TrainingOptions& options() const { return options_; }
  const nn::Module& initial() const { return *initial_; }
  training::Examples batch(int step) {
    return source_ ? source_->batch(step) : made_examples(options_, static_cast<uint64_t>(step));
  }
  std::string data_sha256() const { return source_ ? source_->sha256() : io::sha256_of_files({}); }

 private:
  training::TrainingOptions options_;
  std::optional<training::Source> source_;
  std::unique_ptr<nn::Module> initial_;
};

Predicates predicates_of(const Start& start, const Recipe& recipe) {
  return measure(update_of(with_recipe(start.options(), recipe)), streams::named_parameters(start.initial()));
}

Visible visible_of(const Start& start) { return measure_visible(start.options(), start.initial()); }

// Trains one recipe with one seed: every defined cell, in lockstep. Empty if go_on(step) returned false.
std::vector<RunResult> train(const TableOptions& o, const Recipe& recipe, Start& start,
                             const std::vector<const Cell*>& cells, const std::function<bool(int step)>& go_on) {
  const training::TrainingOptions p = with_recipe(start.options(), recipe);
  RunResult reference = reference_record();
  std::vector<RunResult> controls = control_records(o.controls), runs;
  for (const Cell* cell : cells) {
    runs.push_back(record(cell->variant));
    if (cell->expected == Verdict::different) runs.back().expected = Verdict::different;
    runs.back().same_start = cell->same_start;
  }
  Lockstep all(p, start.initial(), reference, controls, runs);
  std::vector<RunResult> negative = negative_control_records(p);
  add_negative_controls(all, p, start.initial(), negative, start.batch(kNegativeSteps));
  for (int t = 0; t < o.steps; ++t) {
    all.step(start.batch(t), recipe.lr);
    if (!go_on(t + 1)) return {};
  }
  for (RunResult& run : runs) run.control = running_maximum(controls);
  judge(runs, reach(negative), p.dtype);
  return runs;
}

template <class Named> void check_distinct(const std::vector<Named>& list, const char* what) {
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      check(std::string_view(list[i].name) != list[j].name, "table: ", what, " ", list[i].name, " is there twice, at ",
            j + 1, " and ", i + 1);
}

}  // namespace

void take_seed(Cell& cell, const RunResult& run, bool first) {
  const bool low = cell.expected == Verdict::different;  // the seed that differs least counts
  for (const Quantity& q : kQuantities) {
    double &kept = cell.deviation.*q.size, &control = cell.control.*q.size;
    const double value = run.largest.*q.size;
    kept = first ? value : low && value < kept ? value : low && value == value ? kept : larger(kept, value);
    if (!(run.control.*q.path).empty()) control = larger(control, (run.control.*q.path).back());
  }
  if (!first && run.agreement() <= cell.agreement) return;
  cell.agreement = run.agreement();
  // A run that looks as expected but falls short of the margin, or was compared with itself, shows nothing.
  cell.observed = cell.agreement == Verdict::undecided ? Verdict::undecided : run.verdict;
  cell.reason = run.reason;
}

Predicates predicates_of(const TableOptions& o, const Recipe& recipe) { return predicates_of(Start(o, 1), recipe); }
Visible visible_of(const TableOptions& o) { return visible_of(Start(o, 1)); }

TableResult table(const TableOptions& o, const std::function<bool(const TableProgress&)>& progress) {
  check(o.steps > 0 && o.seeds > 0 && o.controls > 0, "table: ", o.steps, " steps, ", o.seeds, " seeds and ",
        o.controls, " controls, expected at least 1 of each");
  check(!o.rows.empty() && !o.columns.empty(), "table: ", o.rows.size(), " variants and ", o.columns.size(),
        " optimizers, expected at least 1 of each");
  for (const Recipe& r : o.columns)
    check(r.name && r.title && r.optimizer, "table: the column ", r.name ? r.name : "without a name",
          " lacks its name, title or optimizer");
  check_distinct(o.rows, "the variant");
  check_distinct(o.columns, "the optimizer");
  if (o.threads > 0) set_num_threads(o.threads);
  const Stopwatch watch;
  TableResult result;
  result.options = o;
  result.model = model_options(o, 1);
  std::deque<Start> starts;
  for (int seed = 1; seed <= o.seeds; ++seed) starts.emplace_back(o, seed);
  result.manifest = manifest_of(result.model);
  result.manifest.data_sha256 = starts[0].data_sha256();
  int passes = 0;
  const auto go_on = [&](const Recipe& recipe, int seed, int step) {
    const double part =
        (passes + static_cast<double>(step) / o.steps) / static_cast<double>(o.columns.size() * o.seeds);
    result.interrupted = progress && !progress({recipe.title, seed, step, part, watch.seconds()});
    return !result.interrupted;
  };
  for (const Recipe& r : o.columns) {
    if (!go_on(r, 0, 0)) return result;
    result.predicates.push_back(predicates_of(starts[0], r));
  }
  result.visible = visible_of(starts[0]);
  check(result.visible.affine == o.affine, "table: norms with a learned gain are required, but the norms of ",
        o.connection.name, " have none");
  for (const Variant& v : o.rows)
    for (size_t c = 0; c < o.columns.size(); ++c) {
      const Derived e = expectation(v, result.predicates[c], result.visible);
      result.cells.push_back({.variant = v,
                              .recipe = o.columns[c],
                              .expected = e.value,
                              .observed = {},
                              .because = e.because,
                              .same_start = e.same_start});
    }
  for (size_t c = 0; c < o.columns.size(); ++c) {
    std::vector<Cell*> defined;
    for (size_t row = 0; row < o.rows.size(); ++row)
      if (Cell& cell = result.cells[row * o.columns.size() + c]; cell.expected) defined.push_back(&cell);
    for (int seed = 1; seed <= o.seeds; ++seed) {
      const std::vector<RunResult> runs =
          train(o, o.columns[c], starts[static_cast<size_t>(seed - 1)], {defined.begin(), defined.end()},
                [&](int step) { return go_on(o.columns[c], seed, step); });
      if (result.interrupted) return result;
      for (size_t i = 0; i < runs.size(); ++i) take_seed(*defined[i], runs[i], seed == 1);
      ++passes;
    }
  }
  result.verdict = Verdict::equivalent;
  for (const Cell& cell : result.cells) result.verdict = std::max(result.verdict, cell.agreement);
  result.seconds = watch.seconds();
  return result;
}

std::vector<TableOptions> full_tables(const TableOptions& options) {
  TableOptions plain = options;
  plain.model = &training::kGpt;
  plain.data.clear();
  plain.affine = plain.tied = plain.made = false;
  TableOptions affine = plain, tied = plain, vit = plain;
  affine.affine = true;
  tied.tied = true;
  vit.model = &training::kVit;
  vit.made = !std::filesystem::exists(data::kFashionMnistDir);
  return {plain, affine, tied, vit};
}

}  // namespace isonorm::equivalence
