// isonorm verify A B: are two checkpoints one function, whatever the forms of their streams?
#include <cstdio>

#include "equivalence/convert/convertible.h"
#include "streams/stream.h"
#include "tools/model_data.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/terminal.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

struct VerifyOptions {
  std::string a, b, spec, data;
  std::string up_to;
  Device device = kCpu;
  bool quiet = false;
};

Verification by_models(const VerifyOptions& o, const training::ModelFile& a, const training::ModelFile& b) {
  for (const auto& [file, path] : {std::pair(&a, &o.a), {&b, &o.b}}) {
    const Scope scope(*path);
    check(!file->description.empty(), "it does not say what model it holds; describe it with --spec FILE");
    training::ModelOptions{file->description};
  }
  std::vector<std::pair<std::string, Tensor>> more;
  if (!o.data.empty()) more.emplace_back("logits of data", data_inputs(a.description, o.data));
  return verify_models(a, b, more, o.device, !o.up_to.empty());
}

// Tensors that are held as bytes are compared as bytes, so their dtypes must be one.
void check_dtypes(const VerifyOptions& o, const training::ModelFile& a, const training::ModelFile& b) {
  const auto look = [&](const training::ModelFile& file, const training::ModelFile& other) {
    for (const auto& [name, dtype] : file.foreign) {
      const auto at = other.foreign.find(name);
      check(!other.state.find(name) || (at != other.foreign.end() && at->second == dtype), "verify: '", name,
            "' has dtype ", dtype, " in ", &file == &a ? o.a : o.b, " and another in ", &file == &a ? o.b : o.a);
    }
  };
  look(a, b), look(b, a);
}

Verification by_spec(const VerifyOptions& o, const training::ModelFile& a, const training::ModelFile& b) {
  const auto layout = [&](const training::ModelFile& file) {
    if (const auto form = file.other.find(streams::kStreamForm); form != file.other.end())
      return described_placement(o.spec, file.state, true, streams::form_named(form->second));
    const bool described = !file.description.empty();
    return described_placement(
        o.spec, file.state, described,
        described ? training::stored_form(training::ModelOptions(file.description)) : streams::Form::layer_norm);
  };
  const streams::Placement of_a = layout(a), of_b = layout(b);
  equivalence::check_dtypes(of_a, a.foreign), equivalence::check_dtypes(of_b, b.foreign);
  return verify_streams(a, of_a, b, of_b, !o.up_to.empty());
}

int run(const VerifyOptions& o) {
  check_outputs({}, {{"A", o.a}, {"B", o.b}, {"--spec", o.spec}, data_input(o.data)});
  if (!o.spec.empty() && o.device != kCpu)
    throw UsageError("--device needs a model to run, which --spec does not give");
  check_device(o.device);
  if (!o.spec.empty() && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  const training::ModelFile a = training::load_model_file(o.a), b = training::load_model_file(o.b);
  check_dtypes(o, a, b);
  const Verification v = o.spec.empty() ? by_models(o, a, b) : by_spec(o, a, b);
  if (!o.quiet && v.one_kind) {
    if (!v.rotation.empty()) std::printf("%s\n", v.rotation.c_str());
    std::printf("%s\n", printable(entries_text("entries", v.entries)).c_str());
    for (const auto& [what, agreement] : v.outputs) std::printf("%s\n", agreement_text(what, agreement).c_str());
  }
  std::printf("%s\n", printable(v.sentence()).c_str());
  if (v.same() && !o.spec.empty())
    std::printf("That is so by the description, which is unchecked here (isonorm convert --reference checks it).\n");
  return v.same() ? kOk : kNotEquivalent;
}

}  // namespace

Verb add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Say whether two checkpoints are one function");
  auto o = std::make_shared<VerifyOptions>();
  command->add_option("A", o->a, "a checkpoint of isonorm train, or a safetensors file of isonorm convert")->required();
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
