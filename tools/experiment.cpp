// isonorm experiment NAME: measures a claim of a paper and says whether it is confirmed.
#include <cstdio>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/stopwatch.h"
#include "core/system/terminal.h"
#include "lab/papers/experiment.h"
#include "tools/interrupt.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/options/rows.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;
using namespace papers;

struct Options {
  std::string name, report, json, svg;
  ExperimentOptions experiment;
  bool list = false;
};

int list() {
  for (const Experiment& e : experiments()) print_text(printed("%-14s %s\n%14s (%s)\n", e.name, e.claim, "", e.source));
  return kOk;
}

std::string svg_path(const Options& o, const reports::Figure& figure) {
  return text(o.svg, "/", o.name, "-", figure.name, ".svg");
}

int run_experiment(Options o) {
  if (o.list || o.name.empty()) return list();
  const Experiment& e = find_experiment(o.name);
  make_folder(o.svg);
  check_outputs({{"--report", o.report},
                 {"--json", o.json},
                 {"--svg", o.svg.empty() ? "" : text(o.svg, "/", o.name, "-*.svg"), Written::several}},
                {data_input(o.experiment.data)});

  StatusLine status(stderr, !is_terminal(stderr));
  o.experiment.progress = [&](const std::string& line) {
    if (status.due(2, 3)) status.update(line);  // rate-limited between the first and the last
    return !interrupted();
  };
  o.experiment.stop = interrupted;
  catch_interrupt();
  const Stopwatch watch;
  const ExperimentResult r = e.run(o.experiment);
  const double seconds = watch.seconds();
  status.clear();
  if (r.interrupted || interrupted()) return fail("isonorm experiment", "interrupted", kInterrupted);
  if (!o.svg.empty())
    for (const reports::Figure& figure : r.figures) write_file(svg_path(o, figure), figure_svg(figure));
  const size_t width = line_width(stdout);
  print_and_write(
      text(reports::wrapped(e.claim, width), '\n', reports::wrapped(text("(", e.source, ")"), width), "\n\n"),
      [&] { show(document_of(e, o.experiment, r, seconds), false, o.report, o.json); });
  return r.undecided ? kUndecided : r.confirmed ? kOk : kDifferent;
}

}  // namespace

Verb add_experiment(CLI::App& app) {
  CLI::App* command = app.add_subcommand("experiment", "Measure a claim of a paper, with a table and pictures");
  auto o = std::make_shared<Options>();
  const std::string names = training::names_of(experiments());
  std::vector<Experiment> scaled(experiments().begin(), experiments().end());
  std::erase_if(scaled, [](const Experiment& e) { return !e.has(kTakesFull); });
  command->add_option("NAME", o->name, text("one of ", names, "; none: lists the experiments"));
  command->add_flag("--list", o->list, "print every experiment with its claim and source");
  add_seed(*command, o->experiment.seed, "of weights, inputs and generated data");
  command->add_option("--data", o->experiment.data,
                      "trajectories: a folder of Fashion-MNIST's files or a text file; cnn-norms: such a folder; "
                      "perplexity: a text file (default: a text made from the seed, for cnn-norms Debian's folder)");
  add_number(*command, "seeds", o->experiment.seeds, "controls: how many are trained, from 24 on (default: 1000)",
             {.least = 24, .most = 100000});
  command->add_flag("--full", o->experiment.full,
                    text("a larger scale, in up to 20 minutes: ", training::names_of(scaled)));
  add_device(*command, o->experiment.device);
  command->add_option("--report", o->report, "write tables and pictures as an HTML page");
  add_json(*command, o->json);
  command->add_option("--svg", o->svg, "write every picture into this folder, created if needed, as NAME-picture.svg");
  command->footer(exit_codes("0 confirmed, 1 refuted", "5 undecided"));
  return {command,
          [o, names] {
            if (o->list || o->name.empty()) return run_experiment(*o);
            const auto e = training::row_at(experiments(), o->name);
            if (e == experiments().end())
              throw UsageError(text("NAME: ", Shown{o->name, '"'}, " is not one of ", names));
            const ExperimentOptions& given = o->experiment;
            for (const auto& [asked, trait, option, has] :
                 {std::tuple{!given.data.empty(), kReadsData, "--data", "reads no data"},
                  {given.device != kCpu, kOnDevice, "--device", "computes on the CPU"},
                  {given.seeds != 0, kTakesSeeds, "--seeds", "has one seed"},
                  {given.full, kTakesFull, "--full", "has one scale"}})
              if (asked && !e->has(trait)) throw UsageError(text(option, ": ", e->name, " ", has));
            training::check_device(o->experiment.device);
            return run_experiment(*o);
          },
          {&experiment_description()}};
}

}  // namespace isonorm::tools
