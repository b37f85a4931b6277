// The grid of every way to store weights and every kind of optimizer: which pairs follow the Pre-LN trajectory, in
// theory (from measured properties of each optimizer: predicates.h, expectation.h) and in training.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "equivalence/grid/expectation.h"
#include "equivalence/grid/recipe.h"
#include "equivalence/judge/run_result.h"
#include "training/records/manifest.h"

namespace isonorm::equivalence {

struct TableOptions {
  const training::ModelRow* model = &training::kGpt;
  nn::Arrangement connection = nn::kPreLn;  // or a program's own
  std::string data;                         // as in ProofOptions; gpt without data trains on random tokens
  bool affine = false;                      // norms with learned gain and bias
  bool tied = false;                        // gpt: the head uses the token table
  bool made = false;                        // vit: on images made from the seed, of 14 x 14 pixels, instead of data
  int64_t depth = 2;                        // Transformer blocks
  int steps = 20;
  int seeds = 3;
  int controls = 4;      // runs of Pre-LN moved by one ulp, per recipe and seed
  int threads = 0;       // 0: all that the machine has
  Device device = kCpu;  // of models, batches and measurements of updates
  std::vector<Variant> rows{variants().begin(), variants().end()};
  std::vector<Recipe> columns{recipes().begin(), recipes().end()};
};

// One variant with one recipe. Deviations are relative, and the largest over the steps. If `equivalent` is expected,
// they are the largest over the seeds; if `different` is expected, from the seed that differs least. NaN stays.
struct Cell {
  Variant variant;
  Recipe recipe;
  MaybeVerdict expected, observed;  // none: not trained
  std::string because{};            // the reason for the expectation
  bool same_start = true;           // as in Derived
  // RunResult::agreement() of the worst seed: does the observation agree with the expectation?
  Verdict agreement = Verdict::equivalent;
  std::string reason{};               // of the seed with the worst agreement
  Magnitudes deviation{}, control{};  // control: the largest over seeds

  bool as_expected() const { return agreement == Verdict::equivalent; }
};

// Adds the verdict of one more seed to the cell. The first seed replaces the cell's values.
void take_seed(Cell& cell, const RunResult& run, bool first);

struct TableResult {
  TableOptions options;
  training::TrainingOptions model;  // of the first seed: sizes, data, dtype
  training::Manifest manifest;
  std::vector<Predicates> predicates;    // of each column's update
  Visible visible;                       // of the model's function
  std::vector<Cell> cells;               // row by row
  Verdict verdict = Verdict::undecided;  // the worst agreement of a cell
  bool interrupted = false;              // nothing is concluded
  double seconds = 0;

  // Rows and columns count from the end if negative. Throws if there is no such cell.
  const Cell& cell(int64_t row, int64_t column) const {
    const int64_t columns = std::ssize(options.columns), rows = std::ssize(options.rows);
    return cells[normalize_index(row, rows, "table: row") * columns +
                 normalize_index(column, columns, "table: column")];
  }
  bool as_expected() const { return !interrupted && verdict == Verdict::equivalent; }
};

struct TableProgress {
  const char* recipe;
  int seed, step;  // 0: the recipe's update is being measured
  double done;     // part of the whole work that is done, 0 to 1
  double seconds;
};

// Measures the update of a column, with the parameters of the grid's model.
Predicates predicates_of(const TableOptions& options, const Recipe& recipe);
// Measures the blindness of the grid's model.
Visible visible_of(const TableOptions& options);

// Derives every cell. Then trains Pre-LN, its controls and every row in lockstep for `steps` steps at a constant rate,
// once per column and seed, in f64, and judges each run by criterion.h. The model is a Transformer of width 8, `depth`
// blocks, 2 heads, MLP width 16, with biases, whose raw weights have mean 0.15. A batch is 4 rows of 6 tokens, or 4
// images. `progress` is called after every step and returns false to stop. Throws if the options make no table (for
// example, if two rows or two columns have one name), and on unreadable data.
TableResult table(const TableOptions& options, const std::function<bool(const TableProgress&)>& progress = {});

// The grids of `isonorm table --full`, each with the rows, columns and numbers of `options`: gpt, gpt with affine
// norms, gpt with a tied head, and vit (on generated images if the files of Fashion-MNIST are missing).
std::vector<TableOptions> full_tables(const TableOptions& options);

}  // namespace isonorm::equivalence
