#include "training/records/training_text.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/printed.h"
#include "training/from_outside.h"
#include "training/records/curves.h"

namespace isonorm::training {
namespace {

// The whole course of a training: from its log, and of this run.
TrainingCourse whole(const TrainingResult& training) {
  TrainingCourse c = training.earlier;
  c.steps.insert(c.steps.end(), training.steps.begin(), training.steps.end());
  for (const Evaluation& e : training.evaluations)
    if (c.evaluations.empty() || c.evaluations.back().step < e.step) c.evaluations.push_back(e);
  return c;
}

reports::Figure loss_figure(const TrainingCourse& course) {
  const std::vector<double> losses = per_step(course, [](const TrainingStep& s) { return s.loss; });
  const size_t window = std::max<size_t>(1, losses.size() / 100);
  reports::Chart chart{.title = "Training loss per step", .width = 990, .height = 360};
  if (window > 1) chart.lines.push_back({"training loss", "raw", losses});
  chart.lines.push_back(
      {window > 1 ? text("its mean over ", window, " steps") : "training loss", "other", running_mean(losses, window)});
  if (course.evaluations.size() > 1)
    chart.lines.push_back(
        {"test loss", "bound", between(course.evaluations, [](const Evaluation& e) { return e.loss; })});
  fit_axis(chart);
  return {.name = "loss", .heading = "Loss", .panels = {panel_of(std::move(chart))}};
}

// Learning rate, gradient norm and accuracy, each if recorded.
reports::Figure course_figure(const TrainingCourse& course) {
  reports::Figure figure{.name = "course", .heading = "Course"};
  const auto add = [&](const std::string& heading, const std::string& title, std::vector<double> values) {
    if (std::none_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) return;
    reports::Chart chart{.title = title, .width = 330, .height = 260, .lines = {{heading, "other", std::move(values)}}};
    fit_axis(chart);
    figure.panels.push_back({.heading = heading, .drawing = chart});
  };
  add("Learning rate", "Learning rate of each step", per_step(course, [](const TrainingStep& s) { return s.lr; }));
  add("Gradient norm", "Norm of the gradient at each step, before clipping",
      per_step(course, [](const TrainingStep& s) { return s.gradient_norm.value_or(kNothing); }));
  if (course.evaluations.size() > 1)
    add("Test accuracy, %", "Accuracy of each test",
        between(course.evaluations, [](const Evaluation& e) { return 100 * e.accuracy(); }));
  const char* layouts[] = {"", "", "two", "three"};
  figure.css = layouts[figure.panels.size()];
  figure.caption = "The gradient norm is measured before clipping, and only if there is clipping.";
  return figure;
}

std::string gone_on_text(const TrainingResult& training) {
  const int before = training.first_step - 1, known = static_cast<int>(training.earlier.steps.size());
  return text("Resumed after step ", before, ": ",
              known == before ? "earlier steps are from the log."
              : known == 0    ? "earlier steps are not shown, since no --log has them."
                              : text("the log has ", plural(known, "step"), " of the earlier ones."));
}

reports::TextTable evaluation_table(const TrainingCourse& course, Input input) {
  reports::TextTable table{.heading = "Test",
                           .columns = {"after step", "loss", "accuracy", "right", "of"},
                           .caption = text("On ", name_of(input), " that the training never saw."),
                           .detail = true};
  if (input != Input::images) table.columns.push_back("perplexity");
  for (const Evaluation& e : course.evaluations) {
    table.rows.push_back({reports::count_cell(e.step), reports::printed_cell("%.4f", e.loss),
                          reports::percent_cell(e.accuracy()), reports::count_cell(e.right),
                          reports::count_cell(e.predictions)});
    if (input != Input::images) table.rows.back().push_back(reports::printed_cell("%.3f", std::exp(e.loss)));
  }
  return table;
}

// "6000 steps", or "400 of 6000 steps, since 3 test passes had no loss below 0.5532, that after step 100".
std::string steps_text(const TrainingResult& training) {
  const std::string all = plural(training.options.step_count(), "step");
  if (training.patience == 0 || training.evaluations.empty() || !training.best) return all;
  return text(training.evaluations.back().step, " of ", all, ", since ", training.patience,
              training.patience == 1 ? " test pass" : " test passes", " had no loss below ",
              printed("%.4f", training.best->loss), ", that after step ", training.best->step);
}

std::string sentence(const TrainingResult& training) {
  const TrainingOptions& o = training.options;
  return text(o.model.transformer().connection == nn::kPreLn
                  ? ""
                  : text(name_and_origin(o.model.transformer().connection), ", "),
              training.form, ", ", training.parameters, " parameters, ", steps_text(training), ": ",
              training.evaluations.empty() ? "nothing to test on"
                                           : evaluation_text(training.evaluations.back(), o.model.row().input));
}

std::vector<std::optional<double>> per_known_step(
    const TrainingCourse& course, const std::function<std::optional<double>(const TrainingStep&)>& value) {
  std::vector<std::optional<double>> values(course.steps.empty() ? 0 : static_cast<size_t>(course.steps.back().step));
  for (const TrainingStep& s : course.steps) values[static_cast<size_t>(s.step - 1)] = value(s);
  return values;
}

const reports::Schema<TrainingResult>& training_schema() {
  const auto test = evaluation_fields<EvaluationOn>().add("step", &EvaluationOn::step, "updates before the test");
  const auto passes = [](const TrainingResult& t, const std::vector<Evaluation>& evaluations) {
    std::vector<EvaluationOn> all;
    for (const Evaluation& e : evaluations) all.push_back({e, t.options.model.row().input});
    return all;
  };
  static const reports::Schema<TrainingResult> schema{
      "train", "What `isonorm train` trained, and how it went.",
      reports::Fields<TrainingResult>()
          .add(
              "sentence", [](const TrainingResult& t) { return sentence(t) + "."; }, "the last line that is printed")
          .add("form", &TrainingResult::form, "form of the residual stream")
          .add("parameters", &TrainingResult::parameters, "number of trained numbers")
          .add("first_step", &TrainingResult::first_step, "more than 1: a checkpoint was resumed")
          .add(
              "steps", [](const TrainingResult& t) { return t.options.step_count(); },
              "updates that were asked for; with `patience` there may be fewer")
          .add(
              "test",
              [passes](const TrainingResult& t) {
                const std::vector<EvaluationOn> all = passes(t, t.evaluations);
                return all.empty() ? std::nullopt : std::optional(all.back());
              },
              "the last test; null: there is nothing to test on", test)
          .add("best", &TrainingResult::best, "the test with the smallest loss; null: neither --best nor --patience",
               reports::Fields<Evaluation>()
                   .add("loss", &Evaluation::loss, "mean cross-entropy of the predictions")
                   .add("step", &Evaluation::step, "updates before the test"))
          .add(
              "evaluations", [passes](const TrainingResult& t) { return passes(t, whole(t).evaluations); },
              "all tests, those before a resumed checkpoint as far as the log has them", test)
          .add("course", whole, "every step, those before a resumed checkpoint as far as the log has them",
               course_fields())};
  return schema;
}

}  // namespace

reports::Fields<TrainingCourse> course_fields() {
  return reports::Fields<TrainingCourse>()
      .add(
          "losses", [](const TrainingCourse& c) { return per_known_step(c, [](const auto& s) { return s.loss; }); },
          "training loss of every step, from step 1; null: unknown")
      .add(
          "learning_rates",
          [](const TrainingCourse& c) { return per_known_step(c, [](const auto& s) { return s.lr; }); },
          "learning rate of every step; null: unknown")
      .add(
          "gradient_norms",
          [](const TrainingCourse& c) { return per_known_step(c, [](const auto& s) { return s.gradient_norm; }); },
          "norm of the gradient before clipping; null: unknown or not measured, because nothing clips");
}

const reports::Description& training_description() { return training_schema(); }

std::string evaluation_text(const Evaluation& e, Input input) {
  return text(input == Input::images ? printed("test loss %.4f", e.loss)
                                     : printed("held-out loss %.4f, perplexity %.3f", e.loss, std::exp(e.loss)),
              printed(", test accuracy %.2f %%", 100 * e.accuracy()), " (", e.right, " of ", e.predictions, " ",
              name_of(input), ")");
}

reports::Document document_of(const TrainingResult& training) {
  const TrainingOptions& o = training.options;
  const TrainingCourse course = whole(training);
  reports::Document d{.title = text(training.form, ", trained"),
                      .about = text("A ", o.model.row().noun, ". ", name_of(o.dtype), ", ", rows_text(o), ", ",
                                    plural(o.step_count(), "step"), " of ", plural(o.batch, "example"), "."),
                      .sentence = sentence(training) + ".",
                      .figures = {loss_figure(course)},
                      .environment = environment_of(training.manifest, training.seconds),
                      .result = training_schema()(training)};
  if (!course.steps.empty()) d.figures.push_back(course_figure(course));
  if (!course.evaluations.empty()) d.tables.push_back(evaluation_table(course, o.model.row().input));
  if (!training.manifest.earlier.empty())
    d.remarks.push_back(text("Extended: ", training.manifest.earlier,
                             ". A training from the start with the options of now is another one."));
  if (training.first_step > 1) d.remarks.push_back(gone_on_text(training));
  return d;
}

}  // namespace isonorm::training
