// isonorm info [FILE]: describes a file without reading its numbers; without FILE, the kernels and libraries on this
// machine.
#include <filesystem>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/kernels/isa_choice.h"
#include "core/kernels/matmul.h"
#include "core/printed.h"
#include "core/system/blas.h"
#include "core/system/foreign_text.h"
#include "exchange/hub/folder.h"
#include "io/data/image_sets.h"
#include "io/tree.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/train_options.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/records/manifest.h"
#include "training/spec/preprocessor.h"

namespace isonorm::tools {
namespace {

struct InfoOptions {
  std::optional<std::string> file;
  std::string json;
};

struct Info {
  struct Model {
    std::string kind, form = {}, storage = {};
    std::vector<reports::Named> options = {};
  };
  struct Training {
    int64_t step;
    std::vector<reports::Named> options;
  };

  std::string text = {};  // the lines of the screen
  std::optional<std::string> file = {};
  std::optional<int64_t> bytes = {};
  std::optional<Model> model = {};
  std::optional<Training> training = {};
  training::DataSpec spec = {};
  Metadata metadata = {};
  std::vector<io::TensorEntry> tensors = {};

  void line(const std::string& words) { text += words + "\n"; }
  void say(const char* what, const std::string& words) { line(printed("%-12s%s", what, words)); }
};

std::optional<std::string> if_any(const std::string& s) { return s.empty() ? std::nullopt : std::optional(s); }

const reports::Schema<Info>& info_schema() {
  const auto model = reports::Fields<Info::Model>()
                         .add("kind", &Info::Model::kind, "`gpt`, `vit`, `translator`; of a folder its `model_type`")
                         .add("form", &Info::Model::form, "form of the residual stream; of a folder empty")
                         .add("storage", &Info::Model::storage, "`raw` or `mapped` weights; of a folder empty")
                         .add("options", &Info::Model::options, "all options of the model; of a folder none");
  const auto training = reports::Fields<Info::Training>()
                            .add("step", &Info::Training::step, "updates before the checkpoint was saved")
                            .add("options", &Info::Training::options, "all options of the training");
  const auto tensor =
      reports::Fields<io::TensorEntry>()
          .add("name", &io::TensorEntry::name, "as the file has it")
          .add(
              "shape", [](const io::TensorEntry& t) { return std::vector<int64_t>(t.shape.begin(), t.shape.end()); },
              "its sizes; a dtype that isonorm lacks has one more, the bytes of an element")
          .add(
              "dtype", [](const io::TensorEntry& t) { return t.foreign.empty() ? name_of(t.dtype) : t.foreign; },
              "its dtype in the file");
  static const reports::Schema<Info> schema{
      "info", "What a file holds. Without a file, `environment` says what this machine computes with.",
      reports::Fields<Info>()
          .add("file", &Info::file, "the file or folder; null: none was named")
          .add("bytes", &Info::bytes, "size of the file; null: a folder, or none")
          .add("model", &Info::model, "null: the file does not describe its model", model)
          .add("training", &Info::training, "null: the file is no checkpoint", training)
          .add(
              "classes", [](const Info& i) { return i.spec.classes; }, "names of the classes of images")
          .add(
              "alphabet_bytes", [](const Info& i) { return i.spec.alphabet.size(); }, "of a model of bytes; else 0")
          .add(
              "tokenizer_bytes", [](const Info& i) { return std::ssize(i.spec.tokenizer); },
              "size of the tokenizer in the file; 0: it has none")
          .add(
              "data", [](const Info& i) { return if_any(i.spec.data); }, "checksum of the training data; null: unknown")
          .add(
              "earlier_data", [](const Info& i) { return if_any(i.spec.earlier_data); },
              "checksums of data of earlier trainings; null: none")
          .add(
              "metadata",
              [](const Info& i) {
                std::vector<reports::Named> all;
                for (const auto& [key, value] : i.metadata) all.push_back({key, value});
                return all;
              },
              "entries of the file that isonorm does not know")
          .add("tensors", &Info::tensors, "in the order of the file", tensor)};
  return schema;
}

std::vector<reports::Named> named(const std::vector<training::Option>& options) {
  std::vector<reports::Named> all;
  for (const training::Option& o : options) all.push_back({o.name, training::option_value(o.name, o.text())});
  return all;
}

// Options that are not the defaults, as the command line has them.
void add_model(Info& info, const Metadata& description) {
  const training::ModelOptions model(description);
  training::ModelOptions given = model, defaults(model.row());
  info.model = {model.row().name, name_of(model.stream().form), model.value("storage"), named(given.options())};
  info.say("model",
           text(model.row().title, ", ", name_of(model.stream().form), ", ", model.value("storage"), " weights"));
  std::string sizes;
  for (const char* size : {"image", "patch", "classes", "vocab", "context", "width", "depth", "heads"})
    if (model.has(size)) sizes += text(sizes.empty() ? "" : ", ", size, ' ', model.value(size));
  info.say("sizes", sizes);
  info.say("options", text("--model ", model.row().name, training::said(given.options(), defaults.options())));
}

void add_training(Info& info, const Metadata& values) {
  training::TrainerOptions given, defaults;
  training::set_as_trained(given, values);
  training::Fields of_given, of_defaults;
  fields(given.training, of_given), fields(given, of_given);
  fields(defaults.training, of_defaults), fields(defaults, of_defaults);
  info.training = {integer_at(values, "step"), named(of_given.options)};
  info.say("training",
           text("after step ", text_at(values, "step"), training::said(of_given.options, of_defaults.options)));
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

void add_machine(Info& info, const training::Manifest& m) {
  info.say("isonorm", m.version);
  info.say("compiler", text(m.compiler, " ", m.flags));
  info.say("CPU", m.cpu);
  info.say("threads", text(m.threads));
  info.say("kernels", text(m.instructions, ": ", m.instructions_reason));
  info.say("BLAS", text(m.blas_version, ", core ", m.blas_core, ", ", m.blas_flavour,
                        " flavour: ", products_by_blas(blas_info())));
}

// How pictures become images of this side.
std::string fit_text(const data::PictureFit& fit, int64_t side) {
  const auto square = [](int64_t length) { return text(length, " x ", length); };
  const int64_t edge = fit.edge == 0 ? side : fit.edge;
  return text(fit.stretch ? "the whole picture" : "the square in the middle", " resized to ", square(edge),
              edge == side ? "" : text(", of which the middle ", square(side)));
}

void add_data_spec(Info& info, const Metadata& description) {
  const training::DataSpec& spec = info.spec;
  if (!spec.alphabet.empty()) info.say("alphabet", plural(spec.alphabet.size(), "byte"));
  if (!spec.tokenizer.empty())
    info.say("tokenizer", text("tokenizer.json of ", io::with_commas(std::ssize(spec.tokenizer)), " bytes"));
  if (!spec.classes.empty()) info.say("classes", data::class_list(spec.classes));
  if (!spec.preprocessor.empty()) {
    const training::ModelShape shape = training::ModelOptions(description).shape();
    info.say("pixels", training::scale_text(spec, shape));
    info.say("pictures", fit_text(preprocessor_of(spec, shape.image, shape.channels).fit, shape.image));
  }
  if (!spec.data.empty()) info.say("data", printable(spec.data, 80));
  if (!spec.earlier_data.empty()) info.say("earlier data", printable(spec.earlier_data, 200));
}

void add_tensors(Info& info, const LazyState& state, const io::ForeignTypes& foreign) {
  info.tensors = io::content_of(state, foreign).entries;
  info.line("");
  for (const std::string& line : io::tree_of(state.outline, foreign)) info.line(line);
}

void add_folder(Info& info, const std::string& path) {
  const hub::Folder folder = hub::open_folder(path);
  info.say("folder", path);
  if (const std::string type = folder.config.word("model_type"); !type.empty()) {
    info.model = {type};
    info.say("model", printable(type, 80));
  }
  add_tensors(info, folder.state, folder.foreign);
}

void add_file(Info& info, const std::string& path) {
  const training::OpenModelFile file = training::open_model_file(path);
  const Scope scope(path);
  const bool ours = !file.description.empty();  // else an entry's name is another program's
  if (ours) info.spec = training::spec_of(*file.file);
  info.bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  info.say("file", text(path, ", ", io::with_commas(*info.bytes), " bytes"));
  if (ours) add_model(info, file.description);
  if (is_checkpoint(file.file->metadata())) add_training(info, checkpoint_values(*file.file));
  for (const auto& [key, value] : file.other)
    if (!ours || !training::is_spec_entry(key)) {
      info.metadata.emplace(key, value);
      info.say("says", printable(text(key, " = ", value), 200));
    }
  add_data_spec(info, file.description);
  add_tensors(info, file.state, file.foreign);
}

int run_info(const InfoOptions& o, const CLI::App& command) {
  check_outputs({{"--json", o.json}}, {{"FILE", o.file.value_or("")}});
  Info info{.file = o.file};
  reports::Environment environment = run_environment(command);
  if (!o.file) {
    const training::Manifest machine = training::manifest_of({});
    add_machine(info, machine);
    environment.facts = environment_of(machine, 0).facts;
  } else if (std::filesystem::is_directory(*o.file)) {
    add_folder(info, *o.file);
  } else {
    add_file(info, *o.file);
  }
  print_and_write(info.text, [&] {
    if (!o.json.empty()) write_file(o.json, to_json(info_schema()(info), info.text, environment));
  });
  return kOk;
}

}  // namespace

Verb add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Describe a file, or the CPU, kernels and BLAS of this machine");
  auto o = std::make_shared<InfoOptions>();
  command->add_option("FILE", o->file,
                      "a checkpoint, a safetensors file, or a folder of the hub; none: CPU, kernels and BLAS");
  add_json(*command, o->json);
  command->footer(exit_codes("0 printed"));
  return {command, [o, command] { return run_info(*o, *command); }, {&info_schema()}};
}

}  // namespace isonorm::tools
