// isonorm hooks SPEC: prints the Python program that records a reference for isonorm convert.
#include <cstdio>

#include "core/system/terminal.h"
#include "streams/layout.h"
#include "equivalence/services/model_data.h"
#include "tools/output.h"
#include "tools/verb.h"

namespace isonorm::tools {

// tools/record.py, which the build makes a string. SPEC stands for the description, which is JSON and therefore has no
// three quotes in a row.
extern const char* const kRecord;

namespace {

int run_hooks(const std::string& spec) {
  check_outputs({}, {{"SPEC", spec}});
  const std::string json = services::description_at(spec).json;
  const Scope scope(spec);
  streams::Layout::streams_from_json(json);  // throws if convert could not read it
  std::string program = kRecord;
  const std::string place = "\"\"\"SPEC\"\"\"";
  print_text(program.replace(program.find(place) + 3, 4, json));
  return kOk;
}

}  // namespace

Verb add_hooks(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "hooks", "Print a Python program that records the computation of a PyTorch model, for convert --reference");
  auto spec = std::make_shared<std::string>();
  command->add_option("SPEC", *spec, "the JSON file of convert --spec, or a folder of the hub (docs/conversion.md)")
      ->required();
  command->footer(exit_codes("0 printed"));
  return {command, [spec] { return run_hooks(*spec); }};
}

}  // namespace isonorm::tools
