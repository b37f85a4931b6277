// isonorm lr-find: the learning-rate range test of a training.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "core/printed.h"
#include "core/random.h"
#include "core/system/parallel.h"
#include "core/system/terminal.h"
#include "equivalence/services/initial_weights.h"
#include "streams/stream.h"
#include "tools/config.h"
#include "tools/help.h"
#include "tools/train_options.h"
#include "tools/verb.h"
#include "training/model_options.h"
#include "training/records/curves.h"
#include "training/steps/callbacks.h"
#include "training/steps/lr_range.h"

namespace isonorm::tools {
namespace {

constexpr int kSteps = 100,
              kLeastSteps = 11;  // default and minimum; with fewer steps the smoothed loss shows nothing
constexpr int kRows = 20;        // limit for the rows of the table

struct LrFindOptions {
  GivenTraining train;
  double from = 1e-6, to = 1;
};

// Options of a training that the test lacks: it sets the learning rate itself, and has its own --steps.
bool is_of_course(std::string_view name) {
  constexpr std::string_view kNames[] = {"lr",         "min_lr",         "warmup",  "schedule",
                                         "ema",        "ema_warmup",     "zero",    "rank_invariant",
                                         "save_every", "evaluate_every", "patience"};
  return std::ranges::count(kNames, name) > 0;
}

struct Point {
  int step;
  double rate, loss, smoothed;
};

std::vector<Point> points_of(const training::LrRange& range) {
  std::vector<Point> points;
  for (size_t t = 0; t < range.losses().size(); ++t)
    points.push_back(
        {static_cast<int>(t) + 1, range.lr(static_cast<int64_t>(t)), range.losses()[t], range.smoothed()[t]});
  return points;
}

const reports::Schema<training::LrRange>& lr_find_schema() {
  using training::LrRange;
  static const reports::Schema<LrRange> schema{
      "lr-find", "Losses at growing learning rates, and the rate that `isonorm lr-find` suggests.",
      reports::Fields<LrRange>()
          .add(
              "suggested_rate",
              [](const LrRange& r) { return r.steepest() ? std::optional(r.lr(*r.steepest())) : std::nullopt; },
              "learning rate at which the smoothed loss falls fastest; null: it falls nowhere")
          .add(
              "best_rate", [](const LrRange& r) { return r.lr(r.least()); }, "rate of the smallest smoothed loss")
          .add("steps", &LrRange::steps, "steps of the test; there are fewer losses if the loss exploded")
          .add("points", points_of, "one for each step",
               reports::Fields<Point>()
                   .add("step", &Point::step, "from 1")
                   .add("rate", &Point::rate, "learning rate")
                   .add("loss", &Point::loss, "training loss")
                   .add("smoothed", &Point::smoothed, "running mean of the losses"))};
  return schema;
}

reports::Document range_document(const training::LrRange& range, const training::TrainingOptions& o) {
  const int last = static_cast<int>(range.losses().size());
  const std::optional<int> steepest = range.steepest();
  reports::Document d{.title = "Learning-rate range test",
                      .about = text("A ", o.model.row().noun, ", ", o.optimizer->name, ", ", last, " of ",
                                    range.steps(), " steps of ", plural(o.batch, "example"), " at rates from ",
                                    shortest(range.lr(0)), " to ", shortest(range.lr(range.steps() - 1)), ".")};
  d.sentence = steepest ? text(printed("--lr %.1e", range.lr(*steepest)),
                               ": there the smoothed loss falls fastest; its minimum is at ",
                               printed("%.1e", range.lr(range.least())), ".")
                        : "The loss falls at none of these rates.";
  d.result = lr_find_schema()(range);
  reports::TextTable table{.heading = "Rates", .columns = {"step", "rate", "loss", "smoothed"}};
  const int every = std::max(1, last / kRows);
  for (int t = 0; t < last; ++t)
    if (t % every == 0 || t == last - 1 || t == steepest)
      table.rows.push_back({reports::count_cell(t + 1), reports::printed_cell("%.1e", range.lr(t)),
                            reports::printed_cell("%.4f", range.losses()[static_cast<size_t>(t)]),
                            reports::printed_cell("%.4f", range.smoothed()[static_cast<size_t>(t)])});
  d.tables.push_back(std::move(table));
  reports::Chart chart{.title = "Loss per step, the rate growing by one factor at each",
                       .width = 990,
                       .height = 360,
                       .lines = {{"training loss", "raw", range.losses()}, {"smoothed", "other", range.smoothed()}}};
  fit_axis(chart);
  d.figures.push_back({.name = "loss", .heading = "Loss", .panels = {panel_of(std::move(chart))}});
  return d;
}

int run_lr_find(LrFindOptions& find) {
  CLI::App& command = *find.train.command;
  take_config(command, find.train.config, *command.get_parent()->get_subcommand("train"));
  training::TrainerOptions& o = find.train.options;
  take_data(find.train);
  check_output_options(find.train.output, {data_input(o.training.data),
                                           test_data_input(o.training.test_data),
                                           {"--init", o.init},
                                           {"--tokenizer", o.training.tokenizer},
                                           {"--config", find.train.config}});
  set_options(find.train, nullptr);
  training::check_data(o.training);
  if (const int steps = o.training.step_count(); steps < kLeastSteps)
    throw UsageError(text("--steps: ", steps, " are too few for a range test, expected at least ", kLeastSteps));
  if (!(find.from < find.to && std::isfinite(find.to / find.from)))
    throw UsageError(text("--from ", find.from, " --to ", find.to,
                          ": expected two rates above 0, the larger last, at most 1e308 times the first"));
  if (o.training.threads > 0) set_num_threads(o.training.threads);
  training::Source source(o.training);
  const training::TrainingOptions& options = source.options();
  manual_seed(options.seed);
  const std::unique_ptr<nn::Module> model = build_model(options, options.model.stream());
  if (!o.init.empty()) {
    const TensorMap weights = services::initial_weights(o.init, *model, options.dtype, options.spec, o.extend_alphabet);
    const Scope scope(o.init);
    model->load_state_dict(weights);
  }
  const auto optimizer = build_optimizer(options, model->named_parameters());
  training::Step step(*model, *optimizer, training::smoothed_cross_entropy(options.label_smoothing),
                      {.limits = options.limits(),
                       .accumulate = options.accumulate,
                       .activations = o.activations == nn::Precision::full ? options.dtype : DType::bf16,
                       .captured = o.captured});
  training::LrRange range(find.from, find.to, options.step_count());
  training::Loop loop(
      step, [&](int64_t t) { return source.batch(t); }, [&](int64_t t) { return range.lr(t); }, {.stop_at_nan = false});
  StatusLine status(stderr, find.train.output.quiet);
  loop.every(1, training::Progress(status, range.steps()));
  loop.every(1, [&](const training::TrainingStep& s) { return range.take(s.loss); });
  loop.run(range.steps());
  status.clear();
  if (range.losses().empty())
    throw Diverged(text("the loss of step 1 is not a finite number; the learning rate is ", range.lr(0)));
  reports::Document d = range_document(range, options);
  d.environment = run_environment(command);
  show(d, find.train.output.quiet, find.train.output.report, find.train.output.json);
  return kOk;
}

}  // namespace

Verb add_lr_find(CLI::App& app) {
  CLI::App* command = app.add_subcommand("lr-find", "Find a learning rate: a short training at rates that grow");
  auto o = std::make_shared<LrFindOptions>();
  o->train.command = command;
  o->train.options.training.steps = kSteps;
  add_train_options(o->train, [](std::string_view name) { return training::is_of_train(name) && !is_of_course(name); });
  add_number(*command, "from", o->from, "first learning rate", training::above(0));
  add_number(*command, "to", o->to, "last learning rate", training::above(0));
  command->add_option("--report", o->train.output.report, "write the curves as an HTML page");
  add_json(*command, o->train.output.json);
  command->add_flag("-q,--quiet", o->train.output.quiet, "print the suggestion only");
  command->footer(
      "It ends when the smoothed loss is four times its minimum. The weights are discarded. (Smith, 1506.01186.)\n" +
      exit_codes("0 shown", "6 numbers are not finite"));
  for (const char* option : {"--report", "--json", "--quiet"}) command->get_option(option)->group("Output");
  lead_with(*command,
            {"--config", "--model", "--data", "--form", "--width", "--depth", "--steps", "--batch", "--from", "--to"});
  return {command, [o] { return run_lr_find(*o); }, {&lr_find_schema()}};
}

}  // namespace isonorm::tools
