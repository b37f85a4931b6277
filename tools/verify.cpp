// isonorm verify A B: are two checkpoints one function, whatever the forms of their streams?
#include <cstdio>
#include <filesystem>
#include <optional>

#include "equivalence/convert/convertible.h"
#include "hub/family.h"
#include "streams/stream.h"
#include "tools/model_data.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/terminal.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;
using streams::Form;

struct VerifyOptions {
  std::string a, b, spec, data, up_to;
  Device device = kCpu;
  bool quiet = false;
};

// A file, or a folder of the hub.
struct Input {
  std::string path;
  training::OpenModelFile file = {};
  std::optional<hub::Folder> folder = {};
  Form form = Form::layer_norm;  // of its stream, where it does not describe its model

  explicit Input(const std::string& p) : path(p) {
    if (!std::filesystem::is_directory(path)) {
      file = training::open_model_file(path);
      if (const auto said = file.other.find(streams::kStreamForm); said != file.other.end())
        form = streams::form_named(said->second);
      else if (!file.description.empty())
        form = training::stored_form(training::ModelOptions(file.description));
      return;
    }
    folder = hub::open_folder(path);
    file.state = folder->state, file.foreign = folder->foreign;
    if (const std::string said = hub::converted(folder->config).form; !said.empty()) form = streams::form_named(said);
  }
  bool own_code() const { return folder && folder->config.own_code(); }
};

Verification by_models(const VerifyOptions& o, const Input& a, const Input& b) {
  for (const Input* of : {&a, &b}) {
    const Scope scope(of->path);
    check(!of->file.description.empty(), "it does not say what model it holds; describe it with --spec FILE");
    training::ModelOptions{of->file.description};
  }
  std::vector<std::pair<std::string, Tensor>> more;
  if (!o.data.empty()) more.emplace_back("logits of data", data_inputs(a.file.description, o.data));
  return verify_models(a.file, b.file, more, o.device, !o.up_to.empty());
}

// Tensors that are held as bytes are compared as bytes, so their dtypes must be one.
void check_dtypes(const Input& a, const Input& b) {
  const auto look = [](const Input& one, const Input& other) {
    for (const auto& [name, dtype] : one.file.foreign) {
      const auto at = other.file.foreign.find(name);
      check(!other.file.state.outline.find(name) || (at != other.file.foreign.end() && at->second == dtype),
            "verify: '", name, "' has dtype ", dtype, " in ", one.path, " and another in ", other.path);
    }
  };
  look(a, b), look(b, a);
}

// By --spec, or as the family of a folder is; a file beside a folder as that one's.
streams::Placement layout(const VerifyOptions& o, const Input& of, const Input& other) {
  const std::string& spec = !o.spec.empty() ? o.spec : of.folder ? of.path : other.path;
  const bool converted = of.form != Form::layer_norm || !of.file.description.empty() ||
                         of.file.other.contains(streams::kStreamForm) || other.folder;
  const streams::Placement layout = described_placement(spec, of.file.state.outline, converted, of.form);
  equivalence::check_dtypes(layout, of.file.foreign);
  if (!of.folder) return layout;
  const hub::SaidOfConversion said = hub::converted(of.folder->config);
  check(said.form.empty() || said.gains.size() == layout.norms.size(), of.path,
        ": config.json says of other norms than the family has that they were converted");
  return layout;
}

Verification by_layouts(const VerifyOptions& o, const Input& a, const Input& b) {
  Verification v = verify_streams(a.file, layout(o, a, b), b.file, layout(o, b, a), !o.up_to.empty());
  if (a.folder && b.folder) v.options = hub::different(a.folder->config, b.folder->config);
  return v;
}

int run(const VerifyOptions& o) {
  check_outputs({}, {{"A", o.a}, {"B", o.b}, {"--spec", o.spec}, data_input(o.data)});
  const Input a(o.a), b(o.b);
  const bool folders = a.folder || b.folder, by_layout = folders || !o.spec.empty();
  if (by_layout && o.device != kCpu) throw UsageError("--device needs a model to run, which --spec does not give");
  check_device(o.device);
  if (by_layout && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  check_dtypes(a, b);
  const Verification v = by_layout ? by_layouts(o, a, b) : by_models(o, a, b);
  if (!o.quiet && v.one_kind) {
    if (!v.rotation.empty()) std::printf("%s\n", printable(v.rotation).c_str());
    std::printf("%s\n", printable(entries_text("entries", v.entries)).c_str());
    for (const auto& [what, agreement] : v.outputs) std::printf("%s\n", agreement_text(what, agreement).c_str());
  }
  std::printf("%s\n", printable(v.sentence()).c_str());
  if (v.same() && !o.spec.empty())
    std::printf("That is so by the description, which is unchecked here (isonorm convert --reference checks it).\n");
  else if (v.same() && (a.own_code() || b.own_code()))
    std::printf("That is so as the family is; config.json names code of its own (auto_map), which is unchecked.\n");
  else if (v.same() && folders)
    std::printf("%s: %s, verified.\n", o.b.c_str(), name_of(b.form));
  return v.same() ? kOk : kNotEquivalent;
}

}  // namespace

Verb add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Say whether two checkpoints are one function");
  auto o = std::make_shared<VerifyOptions>();
  command
      ->add_option("A", o->a, "a checkpoint of isonorm train, a safetensors file, or a folder of the Hugging Face hub")
      ->required();
  command->add_option("B", o->b, "another; the forms of their streams may differ")->required();
  command->add_option("--spec", o->spec,
                      "as for isonorm convert: compares entries, and what the readers of the stream see");
  command->add_option("--data", o->data, "also compare logits on these data: as --data of isonorm train");
  command
      ->add_option(
          "--up-to", o->up_to,
          "a symmetry that may lie between the two: rotation, of the stream of models with RMSNorm and without gains; "
          "which one it is is found from their weights")
      ->check(CLI::IsMember({"rotation"}));
  add_device(*command, o->device);
  command->add_flag("-q,--quiet", o->quiet, "print the verdict only");
  command->footer(
      "Exit codes: 0 one function, 1 not, or not to be shown, 2 usage, 3 bad input, 4 input/output, "
      "70 no memory or threads.");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
