// isonorm rotate IN OUT: a model with RMSNorm in a rotated basis of its residual stream, verified before it is written.
#include <charconv>
#include <optional>

#include "equivalence/convert/convertible.h"
#include "streams/rotation.h"
#include "streams/stream.h"
#include "tools/conversion.h"
#include "tools/options.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

using streams::Form;

constexpr std::string_view kHadamard = "hadamard:", kHaar = "haar:";

// Of a basis of that kind.
std::optional<uint64_t> seed_of(std::string_view basis, std::string_view kind) {
  if (!basis.starts_with(kind)) return {};
  uint64_t seed = 0;
  const char* end = basis.data() + basis.size();
  const auto [at, error] = std::from_chars(basis.data() + kind.size(), end, seed);
  if (error != std::errc() || at != end)
    throw UsageError(text("--basis: \"", basis, "\", expected ", kind, "SEED with a whole number below 2^64"));
  return seed;
}

// Q [d, d].
Tensor basis_rotation(const std::string& basis, int64_t d) {
  if (const auto seed = seed_of(basis, kHadamard)) return streams::hadamard_rotation(d, *seed);
  if (const auto seed = seed_of(basis, kHaar)) return streams::haar_rotation(d, *seed);
  return streams::load_rotation(basis, d);
}

}  // namespace

std::string basis_file(const std::string& basis) {
  return seed_of(basis, kHadamard) || seed_of(basis, kHaar) ? "" : basis;
}

Form rotated_form(Form form) { return form == Form::rms_norm ? Form::uncentred_rms_norm : form; }

// What is rotated is a model whose norms take the length of a row, whatever its mean.
void rotate(streams::Placement& layout, const TensorMap& outline, const std::string& basis) {
  equivalence::check_rotatable(layout);
  layout.form = rotated_form(layout.form);
  equivalence::check_layout(outline, layout);  // before a matrix of its width is made
  layout.rotation = basis_rotation(basis, layout.stored_width());
}

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
  static constexpr Form kRotated[] = {Form::rms_norm, Form::crms_isometric, Form::uncentred_rms_norm};
  command->add_option("--from", o->from, "form of IN (default: what IN says)")
      ->check(CLI::Validator(one_of(kRotated), "FORM"));
  command->add_option("--spec", o->spec,
                      "JSON file that says which tensors read and write the stream, as for isonorm convert");
  add_result_options(*command, *o);
  return {command, [o] {
            if (o->basis.empty()) throw UsageError("--basis: expected hadamard:SEED, haar:SEED or a file");
            return run_convert(*o);
          }};
}

}  // namespace isonorm::tools
