// isonorm perturb IN OUT: moves every weight of a file by a unit in its last place, for a control run.
#include <cstdio>

#include "core/system/terminal.h"
#include "equivalence/lockstep/training.h"
#include "io/safetensors.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/model_file.h"

namespace isonorm::tools {
namespace {

struct PerturbOptions {
  std::string in, out, json;
  int ulps = 1;
  uint64_t seed = 1;
};

struct Perturbed {
  std::string file;
  size_t moved, kept;
  int ulps;
};

const reports::Schema<Perturbed>& perturb_schema() {
  static const reports::Schema<Perturbed> schema{
      "perturb", "The control that `isonorm perturb` wrote.",
      reports::Fields<Perturbed>()
          .add("file", &Perturbed::file, "the file that was written")
          .add("moved", &Perturbed::moved, "tensors whose elements were moved")
          .add("kept", &Perturbed::kept, "tensors of other dtypes, which are unchanged")
          .add("ulps", &Perturbed::ulps, "units in the last place by which each element was moved")};
  return schema;
}

int run_perturb(const PerturbOptions& o, const CLI::App& command) {
  check_outputs({{.option = "OUT", .path = o.out, .binary = true}, {"--json", o.json}}, {{"IN", o.in}});
  const training::OpenModelFile file = training::open_model_file(o.in);
  const io::FileContent content = io::content_of(file.state, file.foreign);
  std::map<std::string, uint64_t> streams;
  size_t kept = 0;
  for (uint64_t i = 0; i < content.entries.size(); ++i)
    if (is_floating(content.entries[i].dtype))
      streams.emplace(content.entries[i].name, i + 1);
    else
      ++kept;
  check(!streams.empty(), o.in, ": it has no tensor of f64, f32 or bf16");
  Metadata metadata = file.description;
  metadata.insert(file.other.begin(), file.other.end());
  save_safetensors(o.out, content.entries, metadata, [&](const std::string& name) {
    const Tensor x = content.read(name);
    const auto at = streams.find(name);
    return at == streams.end() ? x : equivalence::moved_by_ulps(x, o.seed, at->second, o.ulps);
  });
  const std::string said = text(o.out, ": ", streams.size(), " tensors moved by ", o.ulps, " ulp, ", kept,
                                " of other dtypes as they were.\n");
  print_and_write(said, [&] {
    write_json(o.json, perturb_schema()({o.out, streams.size(), kept, o.ulps}), said, command);
  });
  return kOk;
}

}  // namespace

Verb add_perturb(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "perturb", "Move every weight of a file by a unit in the last place, up or down: the start of a control run");
  auto o = std::make_shared<PerturbOptions>();
  command->add_option("IN", o->in, "a checkpoint of isonorm train, or a safetensors file")->required();
  command->add_option("OUT", o->out, "the safetensors file to write")->required();
  add_number(*command, "ulp", o->ulps, "units by which each element is moved; 0 stays 0", {.least = 1, .most = 1024});
  add_seed(*command, o->seed, "of the directions");
  add_json(*command, o->json);
  command->footer(exit_codes("0 written"));
  return {command, [o, command] { return run_perturb(*o, *command); }, {&perturb_schema()}};
}

}  // namespace isonorm::tools
