// isonorm info [FILE]: describes a file without reading its numbers; without FILE, how this machine computes.
#include <filesystem>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/kernels/isa_choice.h"
#include "core/kernels/matmul.h"
#include "core/printed.h"
#include "core/system/blas_info.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "io/data/class_names.h"
#include "exchange/hub/folder.h"
#include "tools/output.h"
#include "tools/train_options.h"
#include "io/tree.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/spec/preprocessor.h"
#include "training/records/manifest.h"

namespace isonorm::tools {
namespace {

struct InfoOptions {
  std::optional<std::string> file;
};

void say(const char* what, const std::string& words) { print_line(printed("%-12s%s", what, words)); }

// Options that are not the defaults, as the command line has them.
void print_model(const Metadata& description) {
  const training::ModelOptions model(description);
  training::ModelOptions given = model, defaults(model.row());
  say("model", text(model.row().title, ", ", name_of(model.stream().form), ", ", model.value("storage"), " weights"));
  std::string sizes;
  for (const char* size : {"image", "patch", "classes", "vocab", "context", "width", "depth", "heads"})
    if (model.has(size)) sizes += text(sizes.empty() ? "" : ", ", size, ' ', model.value(size));
  say("sizes", sizes);
  say("options", text("--model ", model.row().name, training::said(given.options(), defaults.options())));
}

void print_training(const Metadata& values) {
  training::TrainerOptions given, defaults;
  training::set_as_trained(given, values);
  training::Fields of_given, of_defaults;
  fields(given.training, of_given), fields(given, of_given);
  fields(defaults.training, of_defaults), fields(defaults, of_defaults);
  say("training", text("after step ", text_at(values, "step"), training::said(of_given.options, of_defaults.options)));
}

// Says which products OpenBLAS computes, and whether they are slow on this machine.
std::string products_by_blas(const BlasInfo& blas) {
  if (!kernels::openblas_multiplies()) return "computes nothing";
  const int bits = vector_bits(this_processor());
  return text("computes all matrix products of f32 and f64",
              blas.vector_bits > 0 && blas.vector_bits < bits
                  ? text(", slowly: its core has vectors of ", blas.vector_bits, " bits, this CPU of ", bits)
                  : "");
}

int print_machine() {
  const training::Manifest m = training::manifest_of({});
  say("isonorm", m.version);
  say("compiler", text(m.compiler, " ", m.flags));
  say("CPU", m.cpu);
  say("threads", text(m.threads));
  say("kernels", text(m.instructions, ": ", m.instructions_reason));
  say("BLAS",
      text(m.blas_version, ", core ", m.blas_core, ", ", m.blas_flavour, " flavour: ", products_by_blas(blas_info())));
  return kOk;
}

// How pictures become images of this side.
std::string fit_text(const data::PictureFit& fit, int64_t side) {
  const auto square = [](int64_t length) { return text(length, " x ", length); };
  const int64_t edge = fit.edge == 0 ? side : fit.edge;
  return text(fit.stretch ? "the whole picture" : "the square in the middle", " resized to ", square(edge),
              edge == side ? "" : text(", of which the middle ", square(side)));
}

void print_spec(const training::DataSpec& spec, const Metadata& description) {
  if (!spec.alphabet.empty()) say("alphabet", plural(spec.alphabet.size(), "byte"));
  if (!spec.tokenizer.empty())
    say("tokenizer", text("tokenizer.json of ", io::with_commas(std::ssize(spec.tokenizer)), " bytes"));
  if (!spec.classes.empty()) say("classes", data::class_list(spec.classes));
  if (!spec.preprocessor.empty()) {
    const training::ModelShape shape = training::ModelOptions(description).shape();
    say("pixels", training::scale_text(spec, shape));
    say("pictures", fit_text(preprocessor_of(spec, shape.image, shape.channels).fit, shape.image));
  }
  if (!spec.data.empty()) say("data", printable(spec.data, 80));
  if (!spec.earlier_data.empty()) say("earlier data", printable(spec.earlier_data, 200));
}

int run(const InfoOptions& o) {
  if (!o.file) return print_machine();
  const std::string& path = *o.file;
  check_outputs({}, {{"FILE", path}});
  LazyState state;
  io::ForeignTypes foreign;
  if (std::filesystem::is_directory(path)) {
    const hub::Folder folder = hub::open_folder(path);
    state = folder.state, foreign = folder.foreign;
    say("folder", path);
    if (const std::string type = folder.config.word("model_type"); !type.empty()) say("model", printable(type, 80));
  } else {
    const training::OpenModelFile file = training::open_model_file(path);
    const Scope scope(path);
    state = file.state, foreign = file.foreign;
    const bool ours = !file.description.empty();  // else an entry's name is another program's
    const training::DataSpec spec = ours ? training::spec_of(*file.file) : training::DataSpec();
    say("file", text(path, ", ", io::with_commas(static_cast<int64_t>(std::filesystem::file_size(path))), " bytes"));
    if (ours) print_model(file.description);
    if (is_checkpoint(file.file->metadata())) print_training(checkpoint_values(*file.file));
    for (const auto& [key, value] : file.other)
      if (!ours || !training::is_spec_entry(key)) say("says", printable(text(key, " = ", value), 200));
    print_spec(spec, file.description);
  }
  print_line("");
  for (const std::string& line : io::tree_of(state.outline, foreign)) print_line(line);
  return kOk;
}

}  // namespace

Verb add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Print what a file holds, or what this machine computes with");
  auto o = std::make_shared<InfoOptions>();
  command->add_option("FILE", o->file,
                      "a checkpoint, a safetensors file, or a folder of the hub; none: CPU, kernels and BLAS");
  command->footer("Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 70 no memory, 130 interrupted.");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
