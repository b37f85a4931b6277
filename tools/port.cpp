// isonorm import FOLDER OUT and isonorm export IN OUT: converts a published model to a checkpoint of ours, and back, or
// to an ONNX or GGUF file.
#include <set>

#include "core/system/failures.h"
#include "exchange/hub/folder.h"
#include "exchange/hub/port.h"
#include "exchange/models.h"
#include "exchange/onnx/model.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

struct PortOptions {
  std::string in, out, dtype, json;
  exchange::FamilyOptions family;
  std::optional<int64_t> shard, opset;
  const CLI::App* command = nullptr;
};

struct Ported : exchange::WrittenModel {
  std::string file = {};
};

reports::Fields<Ported> ported_fields() {
  return reports::Fields<Ported>()
      .add("file", &Ported::file, "the file or folder that was written")
      .add("format", &Ported::format, "`isonorm`, `folder` (for transformers), `onnx` or `gguf`")
      .add("model", &Ported::model, "`gpt`, `vit`, `translator`")
      .add("family", &Ported::family, "type of the published model; of a folder its class; of an ONNX file empty")
      .add("form", &Ported::form, "form of the residual stream of the weights that were written")
      .add("tensors", &Ported::tensors, "number of tensors")
      .add("opset", &Ported::opset, "of an ONNX file; else null")
      .add("sentence", &Ported::sentence, "the line that is printed");
}

const reports::Schema<Ported>& import_schema() {
  static const reports::Schema<Ported> schema{"import", "The file that `isonorm import` wrote.", ported_fields()};
  return schema;
}

const reports::Schema<Ported>& export_schema() {
  static const reports::Schema<Ported> schema{"export", "The file or folder that `isonorm export` wrote.",
                                              ported_fields()};
  return schema;
}

// Prints the line "OUT: sentence" and writes --json.
int finish(const PortOptions& o, const reports::Schema<Ported>& schema, exchange::WrittenModel written) {
  Ported ported{std::move(written), o.out};
  ported.sentence = text(o.out, ": ", ported.sentence, ".");
  print_and_write(ported.sentence + "\n",
                  [&] { write_json(o.json, schema(ported), ported.sentence + "\n", *o.command); });
  return kOk;
}

int run_import(const PortOptions& o) {
  check_outputs({{.option = "OUT", .path = o.out, .binary = true}, {"--json", o.json}}, {{"FOLDER", o.in}});
  return finish(o, import_schema(), exchange::import_model(o.in, o.out, format_named(o.dtype)));
}

exchange::WrittenModel export_to_onnx(const PortOptions& o) {
  for (const auto& [given, name] : {std::pair(!o.family.like.empty(), "--like"),
                                    {!o.family.family.empty(), "--family"},
                                    {o.shard.has_value(), "--max-shard-size"}})
    if (given) throw UsageError(text(name, " is not for an ONNX file"));
  if (!o.dtype.empty() && o.dtype != "f32" && o.dtype != "f64")
    throw UsageError(text("--dtype ", o.dtype, ": an ONNX file has f32 or f64"));
  check_outputs({{"OUT", o.out, Written::whole, {onnx::data_file(o.out)}}, {"--json", o.json}}, {{"IN", o.in}});
  const auto format = format_named(o.dtype);
  return exchange::export_onnx(o.in, o.out, format ? std::optional(format->dtype) : std::nullopt, o.opset);
}

exchange::WrittenModel export_to_gguf(const PortOptions& o) {
  if (o.shard) throw UsageError("--max-shard-size is not for a GGUF file");
  if (o.dtype == "f64") throw UsageError("--dtype f64: a GGUF file has f32, f16 or bf16");
  check_outputs({{"OUT", o.out}, {"--json", o.json}}, {{"IN", o.in}, {"--like", o.family.like}});
  return exchange::export_gguf(o.in, o.out, o.family);
}

exchange::WrittenModel export_to_folder(const PortOptions& o) {
  check_outputs({{"--json", o.json}}, {{"IN", o.in}, {"--like", o.family.like}});
  return exchange::export_folder(o.in, o.out, o.family, o.shard.value_or(5'000'000'000));
}

int run_export(PortOptions& o) {
  o.family.format = format_named(o.dtype);
  if (o.out.ends_with(".onnx")) return finish(o, export_schema(), export_to_onnx(o));
  if (o.opset) throw UsageError("--opset is for an ONNX file, whose name ends with .onnx");
  return finish(o, export_schema(), o.out.ends_with(".gguf") ? export_to_gguf(o) : export_to_folder(o));
}

// Options of both commands.
void add_common(CLI::App& command, PortOptions& o) {
  o.command = &command;
  command.add_option("--dtype", o.dtype, "dtype of the tensors (default: unchanged)")
      ->check(CLI::IsMember(kFormatNames));
  add_json(command, o.json);
  command.footer(exit_codes("0 written"));
}

}  // namespace

Verb add_import(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Make a file of this program from a published model");
  auto o = std::make_shared<PortOptions>();
  std::string names;
  for (const hub::Port& p : hub::ports()) names += text(names.empty() ? "" : ", ", p.type);
  command
      ->add_option("FOLDER", o->in,
                   text("with config.json and safetensors files, as the Hugging Face hub has it; of type ", names))
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("OUT", o->out, "the safetensors file to write, for train --init, convert, verify, prove")
      ->required();
  add_common(*command, *o);
  return {command, [o] { return run_import(*o); }, {&import_schema()}};
}

Verb add_export(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "Write a checkpoint as a folder for transformers, an ONNX file or a GGUF file");
  auto o = std::make_shared<PortOptions>();
  command->add_option("IN", o->in, "a checkpoint of isonorm train, or a safetensors file that describes its model")
      ->required();
  command
      ->add_option(
          "OUT", o->out,
          "the folder to make, which the transformers library loads; or a file NAME.onnx for ONNX runtimes; or a "
          "file NAME.gguf for llama.cpp. It appears only when it is complete")
      ->required();
  command
      ->add_option(
          "--like", o->family.like,
          "folder of a published model of this kind. Its tokenizer and other files are copied, and the entries of "
          "config.json that are not options of the model. A GGUF file gets only the tokenizer. Without --like, IN's "
          "tokenizer is used if it has one")
      ->check(CLI::ExistingDirectory);
  std::set<std::string> opsets;
  for (int64_t opset : onnx::kOpsets) opsets.insert(text(opset));
  add_number(*command, "opset", o->opset, "opset of the ONNX file (default: 17)")->check(CLI::IsMember(opsets));
  command->add_option("--family", o->family.family,
                      "family of the folder or the GGUF file, such as llama (default: the first that fits)");
  add_shard_size(*command, "largest size of a weights file of the folder (default: 5GB)",
                 [o = o.get()](int64_t bytes) { o->shard = bytes; });
  add_common(*command, *o);
  return {command, [o] { return run_export(*o); }, {&export_schema()}};
}

}  // namespace isonorm::tools
