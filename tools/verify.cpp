// isonorm verify A B: are two checkpoints one function, whatever the forms of their streams?
#include <cstdio>

#include "tools/model_data.h"
#include "tools/verb.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

struct VerifyOptions {
  std::string a, b, spec, data;
  bool quiet = false;
};

DType coarser(DType a, DType b) { return epsilon(a) >= epsilon(b) ? a : b; }

// The options in which two models differ and that their forms do not explain: what a deviation may come from.
std::string differences(const Metadata& a, const Metadata& b) {
  std::string list;
  for (const auto& [key, value] : a) {
    const std::string name = key.substr(key.find('.') + 1);
    const bool form = name == "stream" || name == "storage" || name == "affine" || name == "bias" || name == "tied";
    const auto at = b.find(key);
    if (form || (at != b.end() && at->second == value)) continue;
    list += text(list.empty() ? "" : ", ", name, " ", value, " and ", at == b.end() ? "none" : at->second);
  }
  return list;
}

std::vector<Agreement> by_models(const VerifyOptions& o, const ModelFile& a, const ModelFile& b) {
  for (const auto& [file, path] : {std::pair(&a, &o.a), {&b, &o.b}})
    check(!file->description.empty(), *path, ": it does not say what model it holds; describe it with --spec FILE");
  const DType dtype = coarser(coarsest(a.state), coarsest(b.state));
  std::vector<Agreement> agreements;
  const auto compare = [&](const char* what, const Tensor& inputs) {
    agreements.push_back(compare_models(a.description, a.state, b.description, b.state, inputs, dtype));
    if (!o.quiet) std::printf("%s\n", agreement_text(text("logits of ", what), agreements.back()).c_str());
  };
  compare("random inputs", ModelOptions(a.description).inputs(kRandomRows, 1));
  if (!o.data.empty()) compare("data", data_inputs(a.description, o.data));
  return agreements;
}

std::vector<Agreement> by_spec(const VerifyOptions& o, const ModelFile& a, const ModelFile& b) {
  const auto layout = [&](const ModelFile& file) {
    const auto form = file.other.find(kStreamForm);
    return described_layout(o.spec, file,
                            form == file.other.end() ? nn::StreamForm::layer_norm : nn::stream_form(form->second));
  };
  const Layout layout_a = layout(a), layout_b = layout(b);
  check_convertible(a.state, layout_a);
  check_convertible(b.state, layout_b);
  const Agreement agreement =
      compare_streams(a.state, layout_a, b.state, layout_b, coarser(coarsest(a.state), coarsest(b.state)));
  if (!o.quiet) std::printf("%s\n", agreement_text("readers of random rows", agreement).c_str());
  return {agreement};
}

int run(const VerifyOptions& o) {
  if (!o.spec.empty() && !o.data.empty()) throw UsageError("--data needs a model to run, which --spec does not give");
  const ModelFile a = load_model_file(o.a), b = load_model_file(o.b);
  bool same = true;
  for (const Agreement& agreement : o.spec.empty() ? by_models(o, a, b) : by_spec(o, a, b))
    same = same && agreement.same();
  const std::string why = same ? "" : differences(a.description, b.description);
  std::printf("%s%s%s\n", same ? "Same: the two are one function." : "Different: the two are not one function.",
              why.empty() ? "" : " Their options differ: ", why.empty() ? "" : (why + ".").c_str());
  return same ? kOk : kNotEquivalent;
}

}  // namespace

Verb add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Say whether two checkpoints are one function");
  auto o = std::make_shared<VerifyOptions>();
  command->add_option("A", o->a, "a checkpoint of isonorm train, or a safetensors file of isonorm convert")->required();
  command->add_option("B", o->b, "another; the forms of their streams may differ")->required();
  command->add_option("--spec", o->spec, "as for isonorm convert: compares what the readers of the stream see");
  command->add_option("--data", o->data, "also compare logits on these data: as --data of isonorm train");
  command->add_flag("-q,--quiet", o->quiet, "print the verdict only");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
