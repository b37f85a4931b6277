// isonorm verify A B: are two checkpoints one function, whatever the forms of their streams?
#include "core/system/terminal.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "equivalence/services/verification.h"

namespace isonorm::tools {
namespace {

int run(const services::VerifyOptions& o) {
  training::check_device(o.device);
  check_outputs(services::files_of(o));
  const services::Verified found = services::verify(o);
  for (const std::string& line : found.lines(o.quiet)) print_line(line);
  return exit_code(found.verdict());
}

}  // namespace

Verb add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Say whether two checkpoints are one function");
  auto o = std::make_shared<services::VerifyOptions>();
  command
      ->add_option("A", o->a, "a checkpoint of isonorm train, a safetensors file, or a folder of the Hugging Face hub")
      ->required();
  command->add_option("B", o->b, "another; the forms of their streams may differ")->required();
  command->add_option("--spec", o->spec,
                      "as for isonorm convert: compares entries, and what the readers of the stream see");
  command->add_option("--data", o->data, "also compare logits on these data: as --data of isonorm train");
  command
      ->add_option("--up-to", o->up_to,
                   "accept a rotation of the residual stream between A and B (RMSNorm models without gains); the "
                   "rotation is found "
                   "from the weights")
      ->check(CLI::IsMember({"rotation"}));
  add_device(*command, o->device);
  command->add_flag("-q,--quiet", o->quiet, "print the verdict only");
  command->footer(
      "Exit codes: 0 equivalent, 1 different, 2 usage, 3 bad input, 4 input/output, 5 undecided, "
      "70 no memory or threads, 130 interrupted.");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
