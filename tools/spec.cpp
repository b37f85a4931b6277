// isonorm spec FOLDER: prints the description of a published model, for convert --spec.
#include "core/system/terminal.h"
#include "equivalence/services/model_data.h"
#include "tools/output.h"
#include "tools/verb.h"

namespace isonorm::tools {

Verb add_spec(CLI::App& app) {
  CLI::App* command = app.add_subcommand("spec", "Print the description of a published model, to read or to edit");
  auto folder = std::make_shared<std::string>();
  command->add_option("FOLDER", *folder, "with config.json and weights, as the Hugging Face hub has it")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->footer(
      "Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 70 no memory or threads, 130 interrupted.");
  return {command, [folder] {
            check_outputs({}, {{"FOLDER", *folder}});
            print_text(services::description_at(*folder).json);
            return kOk;
          }};
}

}  // namespace isonorm::tools
