// isonorm audit: what a model's loss cannot see, and how far the mean of its stream drifts.
#include <vector>

#include "core/system/parallel.h"
#include "equivalence/compare/audit.h"
#include "streams/stream.h"
#include "tools/options.h"
#include "tools/output.h"
#include "training/model_file.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

struct AuditVerb {
  training::TrainingOptions model;
  std::string checkpoint, report, json;
  bool quiet = false;
};

// What a model's options are called on the command line, and what they are.
std::vector<std::pair<const char*, std::string>> words(const training::TrainingOptions& o) {
  return {{"--model", name_of(o.model)},
          {"--width", text(o.width)},
          {"--depth", text(o.depth)},
          {"--heads", text(o.heads)},
          {"--patch", text(o.patch)},
          {"--context", text(o.context)},
          {"--vocab", text(o.vocab)},
          {"--head-width", text(o.head_width > 0 ? o.head_width : o.width / o.heads)},
          {"--mlp", text(o.mlp > 0 ? o.mlp : 4 * o.width)},
          {"--activation", name_of(o.activation)},
          {"--positions", name_of(o.positions)},
          {"--tied", o.tied ? "given" : "not given"},
          {"--mean-pool", o.mean_pool ? "given" : "not given"},
          {"--no-bias", o.bias ? "not given" : "given"},
          {"--affine", o.affine ? "given" : "not given"},
          {"--eps", text(o.eps)}};
}

// The model that the file says it holds: sets its options, gives its shape.
training::ModelShape take_model(const std::string& path, const training::ModelFile& file,
                                training::TrainingOptions& o) {
  const Scope scope(path);
  training::ModelOptions m(file.description);
  m.check_size(file.state);
  check(training::stored_form(m) == streams::Form::layer_norm, "audit: the weights are those of ",
        name_of(training::stored_form(m)), ", expected the Pre-LN model's",
        row_of(training::stored_form(m)).layer_norm_model() ? ": isonorm convert --to layer_norm" : "");
  m.transformer() = m.transformer().complete();
  training::ModelShape shape;
  m.give(o, shape);
  if (m.row().input != training::Input::images) o.vocab = shape.vocab;
  return shape;
}

int run(AuditVerb o, const CLI::App& command) {
  check_outputs({{"--report", o.report}, {"--json", o.json}}, {{"--checkpoint", o.checkpoint}});
  if (o.model.threads > 0) set_num_threads(o.model.threads);
  training::ModelFile file;
  training::ModelShape shape;
  if (!o.checkpoint.empty()) file = training::load_model_file(o.checkpoint);
  if (!file.description.empty()) {
    const auto asked = words(o.model);
    shape = take_model(o.checkpoint, file, o.model);
    const auto held = words(o.model);
    for (size_t i = 0; i < asked.size(); ++i)
      if (command.count(asked[i].first) > 0 && asked[i].second != held[i].second)
        throw UsageError(text(asked[i].first, ": ", asked[i].second, ", in ", o.checkpoint, " ", held[i].second));
  }
  const AuditResult r = audit(o.model, file.state, shape);
  show(document_of(r), o.quiet, o.report, o.json);
  return r.as_expected ? kOk : kNotEquivalent;
}

}  // namespace

Verb add_audit(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "audit",
      "Measure which directions of a model's parameters get no gradient, and how far its stream's mean drifts");
  auto o = std::make_shared<AuditVerb>();
  training::TrainingOptions& m = o->model;
  m.model = &training::kGpt;
  m.batch = 4;
  add_model(*command, m.model);
  command->add_option("--checkpoint", o->checkpoint,
                      "weights that isonorm train or convert wrote; the file says what model it holds, a file that "
                      "does not takes the options below (default: initial weights)");
  add_model_options(*command, m);
  add_connection(*command, m.connection);
  add_shown_only(*command, "--precision", name_of(nn::Precision::full));
  command->add_option("--vocab", m.vocab, text(training::models_with("vocab"), ": letters of its alphabet"))
      ->capture_default_str();
  command->add_option("--batch", m.batch, "made examples that are looked at")->capture_default_str();
  add_seed(*command, m.seed, "of initial weights and examples");
  add_threads(*command, m.threads);
  command->add_option("--report", o->report, "write what was found as an HTML page");
  command->add_option("--json", o->json, "write what was found as a JSON object");
  command->add_flag("-q,--quiet", o->quiet, "print the closing sentence only");
  command->footer(
      "Exit codes: 0 as theory says, 1 not, 2 usage, 3 bad input, 4 input/output, 70 no memory or threads.");
  return {command, [o, command] {
            const training::TrainingOptions& m = o->model;
            for (const auto& [name, value] : {std::pair<const char*, int64_t>{"--depth", m.depth},
                                              {"--heads", m.heads},
                                              {"--patch", m.patch},
                                              {"--context", m.context},
                                              {"--vocab", m.vocab},
                                              {"--batch", m.batch}})
              if (value < 1) throw UsageError(text(name, ": ", value, " is not a whole number from 1 on"));
            check_threads(*command, m.threads);
            if (m.width < 2) throw UsageError(text("--width: ", m.width, " is not a whole number from 2 on"));
            if (m.head_width == 0 && m.width % m.heads != 0)
              throw UsageError(text("--heads: ", m.heads, " does not divide the width ", m.width));
            check_own_options(
                m, [&](const training::OwnOption& own) { return own.flag && m.*own.flag && o->checkpoint.empty(); });
            for (const auto& [name, value] : {std::pair{"--head-width", m.head_width}, {"--mlp", m.mlp}})
              if (command->count(name) > 0 && value < 1)
                throw UsageError(text(name, ": ", value, " is not a whole number from 1 on"));
            if (!(m.eps > 0)) throw UsageError(text("--eps: ", m.eps, " is not a number above 0"));
            return run(*o, *command);
          }};
}

}  // namespace isonorm::tools
