// isonorm verify A B: are two checkpoints the same function, in whichever forms?
#include "core/system/terminal.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "equivalence/services/verification.h"

namespace isonorm::tools {
namespace {

struct Verify {
  services::VerifyOptions options;
  std::string json;
};

int run_verify(const Verify& verb, const CLI::App& command) {
  const services::VerifyOptions& o = verb.options;
  training::check_device(o.device);
  services::NamedFiles files = services::files_of(o);
  files.outputs.push_back({"--json", verb.json});
  check_outputs(files);
  const services::Verified found = services::verify(o);
  print_and_write(found.shown(o.quiet),
                  [&] { write_json(verb.json, services::verify_schema()(found), found.shown(), command); });
  return exit_code(found.verdict());
}

}  // namespace

Verb add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Say whether two checkpoints are one function");
  auto verb = std::make_shared<Verify>();
  services::VerifyOptions* o = &verb->options;
  command
      ->add_option("A", o->a, "a checkpoint of isonorm train, a safetensors file, or a folder of the Hugging Face hub")
      ->required();
  command->add_option("B", o->b, "another; the forms of their streams may differ")->required();
  command->add_option("--spec", o->spec,
                      "as for isonorm convert: compares entries, and outputs of the readers of the stream");
  command->add_option("--data", o->data, "also compare logits on these data: as --data of isonorm train");
  command
      ->add_option("--up-to", o->up_to,
                   "accept a rotation of the residual stream between A and B (RMSNorm models without gains); the "
                   "rotation is found "
                   "from the weights")
      ->check(CLI::IsMember({"rotation"}));
  add_device(*command, o->device);
  add_json(*command, verb->json);
  command->add_flag("-q,--quiet", o->quiet, "print the verdict only");
  command->footer(exit_codes("0 equivalent, 1 different", "5 undecided"));
  return {command, [verb, command] { return run_verify(*verb, *command); }, {&services::verify_schema()}};
}

}  // namespace isonorm::tools
