// isonorm audit: what a model's loss cannot see, and how far the mean of its stream drifts.
#include "equivalence/audit.h"

#include <cstdio>

#include "core/parallel.h"
#include "io/checkpoint.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/terminal.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

struct AuditVerb {
  ProofOptions model;
  std::string checkpoint, report, json;
  bool quiet = false;
};

int run(const AuditVerb& o) {
  check_outputs({{"--report", o.report}, {"--json", o.json}}, {{"--checkpoint", o.checkpoint}});
  if (o.model.threads > 0) set_num_threads(o.model.threads);
  const AuditResult r = audit(o.model, o.checkpoint.empty() ? TensorMap() : load_checkpoint(o.checkpoint).weights);
  if (!o.report.empty()) write_file(o.report, audit_html(r));
  if (!o.json.empty()) write_file(o.json, audit_json(r));
  if (!o.quiet) std::printf("%s\n", audit_text(r, wants_color(stdout)).c_str());
  std::printf("%s\n", audit_sentence(r).c_str());
  return r.as_expected ? kOk : kNotEquivalent;
}

}  // namespace

Verb add_audit(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "audit",
      "Measure which directions of a model's parameters get no gradient, and how far its stream's mean drifts");
  auto o = std::make_shared<AuditVerb>();
  ProofOptions& m = o->model;
  m.model = ModelKind::gpt;
  m.batch = 4;
  add_choice(*command, "--model", m.model, {ModelKind::vit, ModelKind::gpt}, "image classifier or language model");
  command->add_option("--checkpoint", o->checkpoint,
                      "weights that isonorm train saved with these sizes (default: initial ones)");
  const std::pair<const char*, int64_t*> sizes[] = {{"--width", &m.width},     {"--depth", &m.depth},
                                                    {"--heads", &m.heads},     {"--patch", &m.patch},
                                                    {"--context", &m.context}, {"--vocab", &m.vocab}};
  const char* help[] = {
      "width of the residual stream",   "Transformer blocks",       "attention heads; they divide the width",
      "vit: side of a patch in pixels", "gpt: characters in a row", "gpt: letters of its alphabet"};
  for (size_t i = 0; i < std::size(sizes); ++i)
    command->add_option(sizes[i].first, *sizes[i].second, help[i])->capture_default_str();
  command->add_flag("--affine", m.affine, "norms with learned gain and bias");
  command->add_option("--batch", m.batch, "made examples that are looked at")->capture_default_str();
  command->add_option("--eps", m.eps, "added inside the root of every norm")->capture_default_str();
  add_seed(*command, m.seed, "of initial weights and examples");
  add_threads(*command, m.threads);
  command->add_option("--report", o->report, "write what was found as an HTML page");
  command->add_option("--json", o->json, "write what was found as a JSON object");
  command->add_flag("-q,--quiet", o->quiet, "print the closing sentence only");
  command->footer(
      "Exit codes: 0 as theory says, 1 not, 2 usage, 3 bad input, 4 input/output, 70 no memory or threads.");
  return {command, [o, command] {
            const ProofOptions& m = o->model;
            for (const auto& [name, value] : {std::pair<const char*, int64_t>{"--depth", m.depth},
                                              {"--heads", m.heads},
                                              {"--patch", m.patch},
                                              {"--context", m.context},
                                              {"--vocab", m.vocab},
                                              {"--batch", m.batch}})
              if (value < 1) throw UsageError(text(name, ": ", value, " is not a whole number from 1 on"));
            check_threads(*command, m.threads);
            if (m.width < 2) throw UsageError(text("--width: ", m.width, " is not a whole number from 2 on"));
            if (m.width % m.heads != 0)
              throw UsageError(text("--heads: ", m.heads, " does not divide the width ", m.width));
            if (!(m.eps > 0)) throw UsageError(text("--eps: ", m.eps, " is not a number above 0"));
            return run(*o);
          }};
}

}  // namespace isonorm::tools
