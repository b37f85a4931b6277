// isonorm table: every way to store weights with every optimizer, as expected by theory and as measured.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "core/system/stopwatch.h"
#include "core/system/terminal.h"
#include "equivalence/grid/grid.h"
#include "equivalence/text/grid_text.h"
#include "nn/residual/all.h"
#include "tools/interrupt.h"
#include "tools/options.h"
#include "tools/output.h"
#include "training/source.h"
#include "training/options/rows.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

struct TableVerb {
  TableOptions table;
  std::vector<std::string> optimizers;
  std::string json, report;
  bool full = false, predicates = false, markdown = false, quiet = false;
};

// Adds an option whose value is a row's name.
template <class Row, class Rows>
void add_choice(CLI::App& command, const std::string& name, Row& target, const Rows& rows, const std::string& help) {
  const std::string names = training::names_of(rows, "|");
  const auto read = [&target, &rows, name, names](const std::string& word) {
    const auto at = training::row_at(rows, word);
    if (at == std::end(rows)) throw CLI::ValidationError(name, text(Shown{word, '"'}, " is not one of ", names));
    target = *at;
  };
  command.add_option_function<std::string>(name, read, help)->type_name(names)->default_str(training::row_name(target));
}

// Prints the properties of the columns' updates, without training.
int print_predicates(const TableVerb& o) {
  std::vector<Predicates> measured;
  for (const Recipe& r : o.table.columns) measured.push_back(predicates_of(o.table, r));
  reports::Document d;
  d.tables = {predicates_table(o.table.columns, measured)};
  print_text(to_text(d, false, line_width(stdout)));
  return kOk;
}

void print_markdown(const TableResult& r) {
  const reports::Document d = document_of({&r, 1});
  print_text(text("## ", title_of(r.options), "\n\n", to_markdown(grid_table(r)), '\n', d.remarks.back(), "\n\n",
                  to_markdown(variants_table(r)), '\n', closing(d), '\n'));
}

// Notes on optimizers in f64.
std::string notes() {
  std::string all;
  for (const training::OptimizerRow& row : training::optimizers())
    if (const std::string note = row.note(DType::f64); !note.empty()) all += text(all.empty() ? "" : ". ", note);
  return all;
}

int run_table(TableVerb& o, const CLI::App& command) {
  if (!o.optimizers.empty()) {
    o.table.columns.clear();
    for (const std::string& name : o.optimizers) o.table.columns.push_back(recipe(name));
  }
  check_outputs({{"--json", o.json}, {"--report", o.report}}, {data_input(o.table.data)});
  if (o.predicates) return print_predicates(o);
  catch_interrupt();
  StatusLine status(stderr, o.quiet);
  const std::vector<TableOptions> grids = o.full ? full_tables(o.table) : std::vector{o.table};
  const int passes = static_cast<int>(grids.size() * o.table.columns.size()) * o.table.seeds;
  int pass = 0;
  std::vector<TableResult> results;
  Verdict verdict = Verdict::equivalent;
  Printing printing;
  for (const TableOptions& grid : grids) {
    MovingRate rate;
    results.push_back(table(grid, [&](const TableProgress& p) {
      rate.add(p.seconds, p.done);
      if (p.step == grid.steps && status.due(++pass, passes))
        status.update(text(title_of(grid), "  ", p.recipe, ", seed ", p.seed, "  ", duration_text(rate.seconds_left(1)),
                           " left"));
      return !interrupted();
    }));
    status.clear();
    if (results.back().interrupted) return fail("isonorm table", "interrupted", kInterrupted);
    printing([&] {
      if (o.markdown)
        print_markdown(results.back());
      else
        show(document_of({&results.back(), 1}), o.quiet, "", "");
    });
    if (o.json.empty() && o.report.empty()) printing.check();
    verdict = std::max(verdict, results.back().verdict);
  }
  reports::Document d = document_of(results);
  d.environment.command = given_command(command);
  write(d, o.report, o.json);
  printing.check();
  return exit_code(verdict);
}

}  // namespace

Verb add_table(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "table", "Train every way to store weights with every optimizer and say which pairs train as Pre-LN does");
  auto o = std::make_shared<TableVerb>();
  add_choice(*command, "--model", o->table.model, training::kModels, "image classifier or language model");
  command->add_option(
      "--data", o->table.data,
      text(training::models_with(training::Input::images),
           ": folder of the four idx.gz files (default: the folder of the package dataset-fashion-mnist); ",
           training::models_with(training::Input::text), ": a text file (default: random tokens)"));
  command->add_option("--optimizers", o->optimizers, "columns, separated by commas (default: all)")->delimiter(',');
  add_number(*command, "steps", o->table.steps, "training steps of every run", training::from(1));
  add_number(*command, "seeds", o->table.seeds, "repetitions with other weights and batches", training::from(1));
  add_number(*command, "depth", o->table.depth, "Transformer blocks", training::from(1));
  add_threads(*command, o->table.threads);
  add_device(*command, o->table.device);
  add_choice(*command, "--connection", o->table.connection, nn::kArrangements,
             "residual connection: how norms and sub-layers are connected to the residual stream");
  CLI::Option* full =
      command->add_flag("--full", o->full,
                        "four grids: gpt, gpt with affine norms, gpt with a tied head, vit (on generated "
                        "images if Fashion-MNIST is not installed)");
  for (const char* other : {"--model", "--data", "--connection"}) full->excludes(other);
  CLI::Option* predicates =
      command->add_flag("--predicates", o->predicates,
                        "print the measured properties of each optimizer's update, from which the "
                        "expectations follow, and train nothing");
  command->add_flag("--markdown", o->markdown, "print the table as Markdown");
  predicates->excludes(add_json(*command, o->json));
  predicates->excludes(command->add_option("--report", o->report, "write the table as an HTML page"));
  command->add_flag("-q,--quiet", o->quiet, "print the closing sentence only");
  command->footer(text(
      "A cell shows the observation (= equivalent, ! different, ? undecided) and the largest relative deviation of the "
      "loss. Expectations are derived from measured properties of each optimizer's update (--predicates). ",
      notes(), ". ",
      exit_codes("0 every cell is as theory says, 1 not",
                 "5 undecided: a cell shows nothing either way and none contradicts")));
  return {command,
          [o, command] {
            training::check_device(o->table.device);
            if (command->count("--model") == 0)
              if (const training::ModelRow* row = training::model_for(o->table.data)) o->table.model = row;
            training::check_kind(*o->table.model, o->table.data);
            training::check_names("--optimizers", o->optimizers, training::names_of(recipes()));
            return run_table(*o, *command);
          },
          {&table_schema()}};
}

}  // namespace isonorm::tools
