// isonorm convert IN OUT: converts a checkpoint to another form, verified before it is written.
// isonorm rotate IN OUT: rotates the residual stream of a model with RMSNorm into another basis, also verified.
#include "equivalence/services/conversion.h"
#include "io/number_format.h"
#include "streams/stream.h"
#include "tools/options.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

struct Convert {
  services::ConvertOptions options;
  std::string json;
};

int run_convert(const Convert& verb, const CLI::App& command, const reports::Schema<services::Converted>& schema) {
  services::NamedFiles files = services::files_of(verb.options);
  files.outputs.push_back({"--json", verb.json});
  check_outputs(files);
  Printing printing;
  services::ConvertOptions o = verb.options;
  o.print = [&](const std::string& line) { printing([&] { print_line(line); }); };
  const services::Converted found = services::convert(o);
  write_json(verb.json, schema(found), found.text, command);
  printing.check();
  return found.written ? kOk : kDifferent;
}

// Adds the options for the result that both commands have, and their exit codes.
void add_result_options(CLI::App& command, Convert& verb) {
  services::ConvertOptions& o = verb.options;
  command.add_option("--dtype", o.dtype, "dtype of the tensors of OUT (default: as in IN)")
      ->check(CLI::IsMember(kFormatNames));
  add_shard_size(command, "largest size of a weights file of a folder, such as 5GB or 5.5GB (default: 5GB)",
                 [&o](int64_t bytes) { o.shard = bytes; });
  command.add_option("--data", o.data, "also compare logits on these data: as --data of isonorm train");
  command.add_flag("--inference", o.inference, "drop the dropout of residual branches, which acts only in training");
  add_json(command, verb.json);
  command.add_flag("-q,--quiet", o.quiet, "no table");
  command.footer(exit_codes("0 checked and written, 1 not the same and not written"));
}

}  // namespace

Verb add_convert(CLI::App& app) {
  CLI::App* command = app.add_subcommand("convert", "Convert a checkpoint to another form of its residual stream");
  auto verb = std::make_shared<Convert>();
  services::ConvertOptions* o = &verb->options;
  const CLI::Validator form = one_of(streams::layer_norm_forms());
  command
      ->add_option("IN", o->in,
                   "a checkpoint of isonorm train, a safetensors file, or a folder of the Hugging Face hub")
      ->required();
  command
      ->add_option("OUT", o->out,
                   "the safetensors file to write, or the folder if IN is a folder; it appears only when it is "
                   "complete and checked")
      ->required();
  command->add_option("--from", o->from, "form of IN (default: what IN says)")->check(form);
  command->add_option("--to", o->to, "form of OUT")->required()->check(form);
  command->add_option("--spec", o->spec,
                      "JSON file that says which tensors read and write the stream, for other "
                      "frameworks' files (docs/conversion.md)");
  command
      ->add_option(
          "--fold", o->fold,
          "gains and biases of norms to fold into the readers: all, or none (only with --to rms_norm, which then "
          "changes only writers, and gives a tied head its own tensor)")
      ->check(CLI::IsMember({"all", "none"}))
      ->capture_default_str();
  command->add_flag(
      "--unit-gains", o->unit_gains,
      "folders only: write ones for folded gains and zeros for folded biases, for classes that need these tensors; an "
      "RMSNorm with a gain reads the ones and ignores the zeros");
  command->add_option("--as", o->as, "folders only: write it as another class that computes the same (llama, for OLMo)")
      ->check(CLI::IsMember({"llama"}));
  command->add_option("--reference", o->reference,
                      "safetensors or .npz file with NAME.input and NAME.output of readers and writers, recorded from "
                      "IN's own program: tests whether --spec is right (docs/conversion.md)");
  add_number(*command, "eps", o->eps, "refuse norms with another eps than this one (default: any)", training::above(0));
  add_result_options(*command, *verb);
  return {command,
          [verb, command] { return run_convert(*verb, *command, services::convert_schema()); },
          {&services::convert_schema()}};
}

Verb add_rotate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("rotate", "Rotate the residual stream of a model with RMSNorm");
  auto verb = std::make_shared<Convert>();
  services::ConvertOptions* o = &verb->options;
  command
      ->add_option("IN", o->in,
                   "a safetensors file or a folder of the Hugging Face hub that isonorm convert made, in rms_norm or "
                   "crms_isometric, or any model with RMSNorm without gains")
      ->required();
  command
      ->add_option(
          "OUT", o->out,
          "the safetensors file to write, or the folder if IN is a folder; it appears only when it is complete and "
          "checked")
      ->required();
  command
      ->add_option("--basis", o->basis,
                   "hadamard:SEED (random signs, then a Hadamard matrix), haar:SEED (uniformly random), or a .npy "
                   " or safetensors file with an orthogonal matrix Q: rows x of the stream become x Q")
      ->required();
  command->add_option("--from", o->from, "form of IN (default: what IN says)")
      ->check(one_of(streams::forms_that(&streams::FormRow::rotates)));
  command->add_option("--spec", o->spec,
                      "JSON file that says which tensors read and write the stream, as for isonorm convert");
  add_result_options(*command, *verb);
  return {command,
          [verb, command] {
            if (verb->options.basis.empty()) throw UsageError("--basis: expected hadamard:SEED, haar:SEED or a file");
            return run_convert(*verb, *command, services::rotate_schema());
          },
          {&services::rotate_schema()}};
}

}  // namespace isonorm::tools
