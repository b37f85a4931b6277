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
  command->footer(exit_codes("0 printed"));
  return {command, [folder] {
            check_outputs({}, {{"FOLDER", *folder}});
            print_text(services::description_at(*folder).json);
            return kOk;
          }};
}

}  // namespace isonorm::tools
