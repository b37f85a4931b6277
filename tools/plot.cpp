// isonorm plot A.jsonl B.csv: the curves of several trainings in common charts.
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/records/comparison.h"
#include "training/records/run_logs.h"

namespace isonorm::tools {
namespace {

struct PlotOptions {
  std::vector<std::string> logs;
  std::string report, json, svg;
};

std::string svg_of(const PlotOptions& o, const std::string& name) { return text(o.svg, "/", name, ".svg"); }

int run_plot(const PlotOptions& o, const CLI::App& command) {
  std::vector<NamedFile> inputs;
  for (const std::string& log : o.logs) inputs.push_back({"LOG", log});
  make_folder(o.svg);
  check_outputs(
      {{"--report", o.report}, {"--json", o.json}, {"--svg", o.svg.empty() ? "" : svg_of(o, "*"), Written::several}},
      inputs);
  std::vector<training::NamedTraining> trainings;
  for (const std::string& path : o.logs) {
    const Scope scope(path);
    std::ifstream log(path, std::ios::binary);
    check_io(log.is_open() && !std::filesystem::is_directory(path), "cannot be read");
    trainings.push_back({printable(path, 60), training::read_logged(log)});
  }
  reports::Document document = training::comparison_of(trainings);
  for (const reports::Figure& figure : document.figures)
    if (!o.svg.empty()) write_file(svg_of(o, figure.name), figure_svg(figure));
  document.environment = run_environment(command);
  show(document, false, o.report, o.json);
  return kOk;
}

}  // namespace

Verb add_plot(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plot", "Show the curves of one or more training logs together");
  auto o = std::make_shared<PlotOptions>();
  command->add_option("LOG", o->logs, "a log of isonorm train --log, JSON or CSV; its last training is shown")
      ->required();
  command->add_option("--report", o->report, "write a page with the curves");
  command->add_option("--svg", o->svg, "write loss.svg and course.svg into this folder, created if needed");
  add_json(*command, o->json);
  command->footer(exit_codes("0 shown"));
  return {command, [o, command] { return run_plot(*o, *command); }, {&training::comparison_description()}};
}

}  // namespace isonorm::tools
