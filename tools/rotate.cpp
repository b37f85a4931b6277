// isonorm rotate IN OUT: a model with RMSNorm in a rotated basis of its residual stream, verified before it is written.
#include "streams/stream.h"
#include "tools/conversion.h"
#include "tools/options.h"
#include "tools/verb.h"

namespace isonorm::tools {

Verb add_rotate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("rotate", "Rotate the residual stream of a model with RMSNorm");
  auto o = std::make_shared<ConvertOptions>();
  command
      ->add_option("IN", o->in,
                   "a safetensors file or a folder of the Hugging Face hub that isonorm convert made, in rms_norm or "
                   "crms_isometric, or any model with RMSNorm without gains")
      ->required();
  command
      ->add_option("OUT", o->out,
                   "the safetensors file, or of a folder the folder, to write; it appears whole and checked, or not")
      ->required();
  command
      ->add_option(
          "--basis", o->basis,
          "hadamard:SEED (random signs, then a Hadamard matrix), haar:SEED (any direction as likely as another), or a "
          ".npy or safetensors file with an orthogonal matrix Q: rows x of the stream become x Q")
      ->required();
  command->add_option("--from", o->from, "form of IN (default: what IN says)")
      ->check(one_of(streams::forms_that(&streams::FormRow::rotates)));
  command->add_option("--spec", o->spec,
                      "JSON file that says which tensors read and write the stream, as for isonorm convert");
  add_result_options(*command, *o);
  return {command, [o] {
            if (o->basis.empty()) throw UsageError("--basis: expected hadamard:SEED, haar:SEED or a file");
            return run_convert(*o);
          }};
}

}  // namespace isonorm::tools
