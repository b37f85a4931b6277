// isonorm compare: two safetensors files of gradients or weights, tensor by tensor, through a map.
#include <cstdio>

#include "core/printed.h"
#include "core/system/file.h"
#include "equivalence/compare/compare_tensors.h"
#include "tools/output.h"
#include "tools/terminal.h"
#include "tools/verb.h"
#include "training/model_file.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

constexpr int64_t kMapLimit = 1 << 20;  // bytes
constexpr size_t kShown = 20;           // differing tensors that are listed

struct CompareVerb {
  std::string a, b, map, json;
  std::vector<std::string> controls;
  CompareTensorsOptions options;
  bool quiet = false;
};

ParameterMap read_map(const std::string& path) {
  if (path.empty()) return {};
  const Scope scope(path);
  const std::vector<uint8_t> bytes = read_all(open_bytes(path), kMapLimit);
  return ParameterMap::from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// The tensors of a safetensors file, or the weights of a checkpoint under the names that the model has for them.
TensorMap load(const std::string& path) {
  training::ModelFile file = training::load_model_file(path);
  for (const auto& [name, dtype] : file.foreign)
    check(false, path, ": tensor '", name, "' has dtype ", dtype, ", which is not compared");
  return std::move(file.state);
}

// The tensors that differ or have no partner, a line each.
std::string list(const TensorsComparison& r) {
  std::string out;
  size_t lines = 0;
  const auto line = [&](const std::string& text_line) {
    if (lines++ < kShown) out += "  " + printable(text_line, 500) + "\n";
  };
  for (const auto& row : r.rows)
    if (row.verdict() != Verdict::same)
      line(text(row.name, row.name == row.partner ? "" : " -> " + row.partner, " ", row.shape, "  ",
                row.problem.empty() ? scientific(row.deviation) : row.problem));
  for (const std::string& name : r.only_a) line(name + "  only in the first");
  for (const std::string& name : r.only_b) line(name + "  only in the second");
  if (lines > kShown) out += text("  ... and ", lines - kShown, " more\n");
  return out;
}

int run(const CompareVerb& o) {
  std::vector<NamedFile> inputs = {{"A", o.a}, {"B", o.b}, {"--map", o.map}};
  for (const std::string& control : o.controls) inputs.push_back({"--control", control});
  check_outputs({{"--json", o.json}}, inputs);
  if (one_file(o.a, o.b)) throw UsageError(text(o.a, " and ", o.b, " are one file: nothing would be compared"));
  CompareTensorsOptions options = o.options;
  for (const std::string& control : o.controls) options.controls.push_back(load(control));
  const ParameterMap map = read_map(o.map);
  const TensorsComparison r = compare_tensors(load(o.a), load(o.b), map, options);
  write(document_of(r), "", o.json);
  if (!o.quiet) std::fputs(list(r).c_str(), stdout);
  std::printf("%s\n", printable(r.message()).c_str());
  return r.same() ? kOk : r.verdict == Verdict::undecided ? kUndecided : kNotEquivalent;
}

}  // namespace

Verb add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "compare", "Compare two safetensors files of weights or gradients, written by whatever program, through a map");
  auto o = std::make_shared<CompareVerb>();
  command->add_option("A", o->a, "the reference")->required();
  command->add_option("B", o->b, "the file that is held against it")->required();
  command->add_option("--map", o->map,
                      "JSON file of rules from names in A to names in B, with linear maps: [{\"a\": \"blocks.*.proj\", "
                      "\"b\": \"h.*.proj\", \"map\": \"recentre\", \"dim\": 0}, ...]");
  command->add_flag("--gradients", o->options.gradients,
                    "the files hold gradients: A's are compared with B's mapped back by the adjoints");
  command->add_option(
      "--tolerance", o->options.tolerance,
      "largest difference relative to the largest entry of a tensor, below 1 (default: 1e-10, f32 1e-4, bf16 3e-2); "
      "integers must be equal");
  command
      ->add_option("--control", o->controls,
                   "what A's program gives where rounding alone is another (isonorm perturb): the tolerance is then 30 "
                   "times what the farthest control deviates by, and 64 eps; may be given several times")
      ->allow_extra_args(false)
      ->excludes("--tolerance");
  command
      ->add_option("--noise", o->options.noise,
                   "with --gradients: a name in A, with * for characters but dots and ** for any, of tensors whose "
                   "gradient is zero in exact "
                   "arithmetic (key biases); may be given several times")
      ->allow_extra_args(false);
  command->add_option("--json", o->json, "write what was found as JSON");
  command->add_flag("-q,--quiet", o->quiet, "print the closing sentence only");
  command->footer(
      "Exit codes: 0 the same, 1 different, 2 usage, 3 bad input, 4 input/output, 5 undecided, "
      "70 no memory or threads.");
  return {command, [o] {
            if (const auto t = o->options.tolerance; t && !(*t >= 0 && *t < 1))
              throw UsageError(text("--tolerance: ", *t, " is not a number from 0 to below 1"));
            for (const std::string& pattern : o->options.noise) {
              if (!o->options.gradients) throw UsageError("--noise: needs --gradients");
              if (pattern.empty()) throw UsageError("--noise: a name is empty");
            }
            return run(*o);
          }};
}

}  // namespace isonorm::tools
