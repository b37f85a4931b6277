// isonorm compare: compares two safetensors files of activations, gradients or weights, tensor by tensor in the order
// of execution.
#include <cstdio>
#include <filesystem>

#include "core/printed.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "equivalence/explain/compare_tensors.h"
#include "io/json.h"
#include "equivalence/services/model_data.h"
#include "io/load_state.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/model_file.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

constexpr int64_t kTextLimit = 1 << 20;  // limit for the bytes of a map or an order
constexpr const char* kOrder = "order";  // the entry of A's metadata
constexpr size_t kShown = 20;            // limit for listed differing tensors

struct CompareVerb {
  std::string a, b, map, spec, order, json;
  std::vector<std::string> controls;
  CompareTensorsOptions options;
  bool quiet = false;
};

ParameterMap read_map(const std::string& path) {
  if (path.empty()) return {};
  const Scope scope(path);
  return ParameterMap::from_json(read_text(path, kTextLimit));
}

bool is_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none);
}

// Reads names from a JSON list, from lines, or separated by commas.
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  if (list.starts_with('[')) {
    io::read_json(list, {.element = [&names]() -> io::JsonValue {
                    return {.string = [&names](const std::string& name) { names.push_back(name); }};
                  }});
    return names;
  }
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find_first_of(",\n\r", begin), list.size());
    if (end > begin) names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

// The order of execution, from --order, A's metadata, --spec, A's header, or else by name.
ExecutionOrder order_of(const CompareVerb& o, const training::OpenModelFile& a,
                        const std::vector<streams::Layout>& layouts) {
  const TensorMap& tensors = a.state.outline;
  const auto metadata = a.other.find(kOrder);
  const bool said = metadata != a.other.end() && metadata->second.starts_with('[');
  if (o.order.empty() && !said) return execution_order(tensors, o.options.gradients, {}, layouts);
  const bool file = is_file(o.order);
  const std::string where = o.order.empty() ? text(o.a, ": its metadata") : "--order";
  const Scope scope(where);
  const std::vector<std::string> names = names_in(file              ? read_text(o.order, kTextLimit)
                                                  : o.order.empty() ? metadata->second
                                                                    : o.order);
  check(!names.empty(), "order: it has no names");
  ExecutionOrder order = execution_order(tensors, o.options.gradients, names);
  order.source = o.order.empty() ? "of its metadata" : "of --order";
  return order;
}

// Opens the tensors of a safetensors file, or the weights of a checkpoint under the model's names. Foreign dtypes are
// converted as by io::numbers_of().
training::OpenModelFile open_tensors(const std::string& path) {
  training::OpenModelFile file = training::open_model_file(path);
  TensorMap outline;
  for (const auto& [name, tensor] : file.state.outline) {
    const auto type = file.foreign.find(name);
    outline.add(name, type == file.foreign.end() ? tensor : io::outline_of_numbers(tensor, type->second));
  }
  file.state.outline = std::move(outline);
  file.state.read = [foreign = file.foreign, read = file.state.read](const std::string& name) {
    const auto type = foreign.find(name);
    return type == foreign.end() ? read(name) : io::numbers_of(read(name), type->second);
  };
  return file;
}

// One line for each tensor that differs or has no partner.
std::string list(const TensorsComparison& r) {
  std::string out;
  size_t lines = 0;
  const auto line = [&](const std::string& text_line) {
    if (lines++ < kShown) out += "  " + printable(text_line, 500) + "\n";
  };
  for (const auto& row : r.rows)
    if (row.verdict() != Verdict::equivalent)
      line(text(row.name, row.name == row.partner ? "" : " -> " + row.partner, " ", row.shape, "  ",
                row.problem.empty() ? scientific(row.deviation) : row.problem));
  for (const std::string& name : r.only_a) line(name + "  only in the first");
  for (const std::string& name : r.only_b) line(name + "  only in the second");
  if (lines > kShown) out += text("  ... and ", lines - kShown, " more\n");
  return out;
}

int run_compare(const CompareVerb& o, const CLI::App& command) {
  std::vector<NamedFile> inputs = {{"A", o.a}, {"B", o.b}, {"--map", o.map}, {"--spec", o.spec}};
  if (is_file(o.order)) inputs.push_back({"--order", o.order});
  for (const std::string& control : o.controls) inputs.push_back({"--control", control});
  check_outputs({{"--json", o.json}}, inputs);
  if (services::one_file(o.a, o.b))
    throw UsageError(text(o.a, " and ", o.b, " are one file: nothing would be compared"));
  CompareTensorsOptions options = o.options;
  for (const std::string& control : o.controls) options.controls.push_back(open_tensors(control).state);
  const ParameterMap map = read_map(o.map);
  if (!o.spec.empty()) {
    const std::string json = services::description_at(o.spec).json;
    const Scope scope(o.spec);
    for (auto& [_, layout] : streams::Layout::streams_from_json(json)) options.layouts.push_back(std::move(layout));
  }
  const training::OpenModelFile a = open_tensors(o.a), b = open_tensors(o.b);
  options.order = order_of(o, a, options.layouts);
  const TensorsComparison r = compare_tensors(a.state, b.state, map, options);
  const std::string said = list(r) + r.sentence() + "\n";
  print_and_write(o.quiet ? r.sentence() + "\n" : said,
                  [&] { write_json(o.json, document_of(r).result, said, command); });
  return exit_code(r.verdict);
}

}  // namespace

Verb add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compare",
                                         "Compare two safetensors files of activations, gradients or weights from any "
                                         "programs: the first tensor that differs, and the likely cause");
  auto o = std::make_shared<CompareVerb>();
  command->add_option("A", o->a, "the reference")->required();
  command->add_option("B", o->b, "the file to compare with A")->required();
  command->add_option("--map", o->map,
                      "JSON file of rules from names in A to names in B, with linear maps: [{\"a\": \"blocks.*.proj\", "
                      "\"b\": \"h.*.proj\", \"map\": \"recentre\", \"dim\": 0}, ...]");
  command->add_option(
      "--spec", o->spec,
      "JSON file of the writers and readers of the stream, as for convert, or a folder of the hub: gives the order of "
      "the layers, and allows more causes to be found");
  command->add_option(
      "--order", o->order,
      "the layers in order of execution, h.*.ln_1,h.*.attn,...: separated by commas, or a file with one per line "
      "(default: \"order\" of A's metadata, --spec, A's header, numbers in names)");
  command->add_flag(
      "--gradients", o->options.gradients,
      "all parameters are gradients, as if their names ended with .grad: A's are compared with B's mapped "
      "back by the adjoints");
  add_number(*command, "tolerance", o->options.tolerance,
             "largest difference relative to the largest entry of a tensor, below 1 (default: 1e-10, f32 1e-4, F16 "
             "4e-3, bf16 3e-2); integers must be equal, and so must the bytes of U64 and C64",
             training::kProbability);
  command
      ->add_option(
          "--control", o->controls,
          "output of A's program with weights moved by one ulp (isonorm perturb): the tolerance becomes 30 times the "
          "largest deviation of a control, plus 64 eps; may be given several times")
      ->allow_extra_args(false)
      ->excludes("--tolerance");
  command
      ->add_option(
          "--noise", o->options.noise,
          "with --gradients: the name in A of parameters whose gradient is zero in exact arithmetic, such as key "
          "biases; * matches anything but '.', ** anything; may be given several times")
      ->allow_extra_args(false);
  add_json(*command, o->json);
  command->add_flag("-q,--quiet", o->quiet, "print the closing sentence only");
  command->footer(exit_codes("0 equivalent, 1 different", "5 undecided"));
  return {command,
          [o, command] {
            for (const std::string& pattern : o->options.noise) {
              if (!o->options.gradients) throw UsageError("--noise: needs --gradients");
              if (pattern.empty()) throw UsageError("--noise: a name is empty");
            }
            return run_compare(*o, *command);
          },
          {&compare_description()}};
}

}  // namespace isonorm::tools
