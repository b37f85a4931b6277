#include "training/records/comparison.h"

#include <algorithm>

#include "core/printed.h"
#include "training/records/curves.h"
#include "training/records/training_text.h"

namespace isonorm::training {
namespace {

using Trainings = std::vector<NamedTraining>;
using Values = std::function<std::vector<double>(const TrainingCourse&)>;

constexpr const char* kColours[] = {"other", "rms", "crms", "isometric", "negative", "plain"};

int last_step(const TrainingCourse& c) { return c.steps.empty() ? 0 : c.steps.back().step; }
// Number of steps per point of a smoothed line.
size_t window_of(const TrainingCourse& c) { return std::max<size_t>(1, static_cast<size_t>(last_step(c)) / 100); }

std::vector<double> losses_of(const TrainingCourse& c) {
  return per_step(c, [](const TrainingStep& s) { return s.loss; });
}

// Steps per second over a sliding window. Each part of a resumed training has its own clock.
std::vector<double> speed_of(const TrainingCourse& c) {
  std::vector<double> speed(static_cast<size_t>(last_step(c)), kNothing);
  const size_t window = std::max<size_t>(4, window_of(c));
  for (size_t i = 1, begin = 0; i < c.steps.size(); ++i) {
    if (c.steps[i].seconds < c.steps[i - 1].seconds) begin = i;
    if (i < begin + window) continue;
    const TrainingStep &from = c.steps[i - window], &to = c.steps[i];
    if (to.seconds > from.seconds)
      speed[static_cast<size_t>(to.step - 1)] = (to.step - from.step) / (to.seconds - from.seconds);
  }
  return speed;
}

// Adds a panel with one curve per training; nothing if no training has the curve.
void add(std::vector<reports::Panel>& panels, const Trainings& trainings, const std::string& heading, int width,
         const Values& values) {
  reports::Chart chart{.title = heading, .width = width, .height = width > 400 ? 360 : 260};
  for (size_t i = 0; i < trainings.size(); ++i) {
    std::vector<double> line = values(trainings[i].logged.course);
    if (std::ranges::any_of(line, [](double v) { return std::isfinite(v); }))
      chart.lines.push_back({trainings[i].name, kColours[i % std::size(kColours)], std::move(line)});
  }
  if (chart.lines.empty()) return;
  fit_axis(chart);
  panels.push_back({.heading = heading, .drawing = std::move(chart)});
}

Values tests(const std::function<double(const Evaluation&)>& value) {
  return [value](const TrainingCourse& c) {
    return c.evaluations.size() > 1 ? between(c.evaluations, value) : std::vector<double>();
  };
}

// How a training ended, as far as its log says.
struct End {
  std::optional<double> loss = {}, test_loss = {}, accuracy = {}, steps_per_second = {};
};

End end_of(const TrainingCourse& c) {
  const auto last = [](const std::vector<double>& v) {
    return v.empty() || std::isnan(v.back()) ? std::nullopt : std::optional(v.back());
  };
  End end{.loss = last(running_mean(losses_of(c), window_of(c))), .steps_per_second = last(speed_of(c))};
  if (c.evaluations.empty()) return end;
  end.test_loss = c.evaluations.back().loss;
  if (c.evaluations.back().predictions > 0) end.accuracy = c.evaluations.back().accuracy();
  return end;
}

reports::TextTable ends(const Trainings& trainings) {
  reports::TextTable table{.heading = "Trainings",
                           .columns = {"log", "steps", "loss", "test loss", "accuracy", "steps/s"},
                           .caption = "The loss is the mean over the last hundredth of the steps."};
  const auto cell = [](const char* format, std::optional<double> v) {
    return v && std::isfinite(*v) ? reports::printed_cell(format, *v) : reports::TextCell{};
  };
  for (const NamedTraining& t : trainings) {
    const End end = end_of(t.logged.course);
    table.rows.push_back({{t.name},
                          reports::count_cell(last_step(t.logged.course)),
                          cell("%.4f", end.loss),
                          cell("%.4f", end.test_loss),
                          end.accuracy ? reports::percent_cell(*end.accuracy) : reports::TextCell{},
                          cell("%.1f", end.steps_per_second)});
  }
  return table;
}

// The options that differ between trainings, one column per training. A CSV log has no options.
reports::TextTable differences(Trainings trainings) {
  std::erase_if(trainings, [](const NamedTraining& t) { return t.logged.options.empty(); });
  reports::TextTable table{.heading = "Options in which they differ", .columns = {"log"}};
  std::vector<std::string> names;
  for (const NamedTraining& t : trainings)
    for (const auto& [name, _] : t.logged.options)
      if (!std::ranges::count(names, name)) names.push_back(name);
  const auto value = [](const NamedTraining& t, const std::string& name) {
    const auto at = std::ranges::find(t.logged.options, name, &std::pair<std::string, std::string>::first);
    return at == t.logged.options.end() ? std::string() : at->second;
  };
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::all_of(trainings, [&](const auto& t) { return value(t, name) == value(trainings[0], name); });
  });
  table.columns.insert(table.columns.end(), names.begin(), names.end());
  for (const NamedTraining& t : trainings) {
    table.rows.push_back({{t.name}});
    for (const std::string& name : names) table.rows.back().push_back({value(t, name)});
  }
  return table;
}

const reports::Schema<Trainings>& plot_schema() {
  const auto evaluation = reports::Fields<Evaluation>()
                              .add("step", &Evaluation::step, "updates before the test")
                              .add("loss", &Evaluation::loss, "mean cross-entropy")
                              .add("right", &Evaluation::right, "predictions that are right")
                              .add("predictions", &Evaluation::predictions, "all predictions");
  const auto ended = [](std::optional<double> End::*member) {
    return [member](const NamedTraining& t) { return end_of(t.logged.course).*member; };
  };
  const auto training =
      reports::Fields<NamedTraining>()
          .add("log", &NamedTraining::name, "the log's file")
          .add(
              "command", [](const NamedTraining& t) { return t.logged.command; }, "of the training; empty: unknown")
          .add(
              "options",
              [](const NamedTraining& t) {
                std::vector<reports::Named> options;
                for (const auto& [name, word] : t.logged.options) options.push_back({name, option_value(name, word)});
                return options;
              },
              "its options; a CSV log has none")
          .add(
              "steps", [](const NamedTraining& t) { return last_step(t.logged.course); }, "the last step")
          .add("loss", ended(&End::loss), "mean training loss over the last hundredth of the steps")
          .add("test_loss", ended(&End::test_loss), "of the last test")
          .add("accuracy", ended(&End::accuracy), "of the last test")
          .add("steps_per_second", ended(&End::steps_per_second), "over the last hundredth of the steps")
          .add(
              "evaluations", [](const NamedTraining& t) { return t.logged.course.evaluations; }, "all tests",
              evaluation)
          .add(
              "course", [](const NamedTraining& t) { return t.logged.course; }, "every step", course_fields());
  static const reports::Schema<Trainings> schema{
      "plot", "Logs of trainings that `isonorm plot` shows together.",
      reports::Fields<Trainings>().add(
          "trainings", [](const Trainings& t) { return t; }, "one for each log", training)};
  return schema;
}

}  // namespace

const reports::Description& comparison_description() { return plot_schema(); }

reports::Document comparison_of(const Trainings& trainings) {
  reports::Figure loss{.name = "loss", .heading = "Loss"}, course{.name = "course", .heading = "Course"};
  add(loss.panels, trainings, "Training loss", 990,
      [](const TrainingCourse& c) { return running_mean(losses_of(c), window_of(c)); });
  add(course.panels, trainings, "Test loss", 330, tests([](const Evaluation& e) { return e.loss; }));
  add(course.panels, trainings, "Test accuracy, %", 330, tests([](const Evaluation& e) { return 100 * e.accuracy(); }));
  add(course.panels, trainings, "Learning rate", 330,
      [](const TrainingCourse& c) { return per_step(c, [](const TrainingStep& s) { return s.lr; }); });
  add(course.panels, trainings, "Gradient norm", 330, [](const TrainingCourse& c) {
    return running_mean(per_step(c, [](const TrainingStep& s) { return s.gradient_norm.value_or(kNothing); }),
                        window_of(c));
  });
  add(course.panels, trainings, "Steps per second", 330, speed_of);
  reports::Document d{.title = plural(static_cast<int64_t>(trainings.size()), "training"),
                      .tables = {ends(trainings)},
                      .result = plot_schema()(trainings)};
  for (size_t i = 0; i < trainings.size(); ++i)
    loss.legend.push_back({kColours[i % std::size(kColours)], trainings[i].name});
  course.legend = loss.legend, course.css = "three";
  course.caption =
      "Losses and gradient norms are means over a hundredth of the steps; the norm is that before clipping.";
  if (!loss.panels.empty()) d.figures.push_back(std::move(loss));
  if (!course.panels.empty()) d.figures.push_back(std::move(course));
  if (reports::TextTable options = differences(trainings); options.columns.size() > 1)
    d.tables.push_back(std::move(options));
  return d;
}

}  // namespace isonorm::training
