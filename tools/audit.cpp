// isonorm audit: directions in weight space that the loss cannot see, and how far the mean of the residual stream
// drifts.
#include <vector>

#include "core/system/parallel.h"
#include "equivalence/compare/audit.h"
#include "streams/stream.h"
#include "tools/help.h"
#include "tools/options.h"
#include "tools/output.h"
#include "training/fields.h"
#include "training/model_file.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

struct AuditVerb {
  training::TrainingOptions training;
  training::Given given;
  std::string checkpoint, report, json;
  bool quiet = false;
};

// The model described in the file. Throws if the command line describes another one.
training::ModelOptions described_model(const AuditVerb& o, const training::ModelFile& file) {
  const Scope scope(o.checkpoint);
  training::ModelOptions m(file.description);
  m.check_size(file.state);
  check(row_of(training::stored_form(m)).raw(), "audit: the weights are stored in the form ",
        name_of(training::stored_form(m)), ", expected the Pre-LN model's",
        row_of(training::stored_form(m)).layer_norm_model() ? ": isonorm convert --to layer_norm" : "");
  m = m.complete();
  training::ModelOptions asked = m;
  training::Given given = o.given;
  training::set_given(asked.options(), given);
  asked = asked.complete();
  for (const auto& [name, word] : o.given) {
    const bool same = name == "model" ? word == m.row().name : asked.value(name) == m.value(name);
    const std::string held = name == "model" ? m.row().name : m.value(name);
    if (!same) throw UsageError(text(training::word_of(name), ": ", word, ", in ", o.checkpoint, " ", held));
  }
  return m;
}

// True for options of the model and of the batch.
bool is_of_audits(std::string_view name) {
  training::TrainingOptions o;
  training::Fields f{.only = name};
  fields(o, f);
  return !training::is_of_streams(name) && name != "precision" &&
         name != "stream_precision" &&  // all of them are audited
         (f.options.empty() || name == "letters" || name == "batch" || name == "seed" || name == "threads");
}

int run_audit(AuditVerb o, const CLI::App& command) {
  check_outputs({{"--report", o.report}, {"--json", o.json}}, {{"--checkpoint", o.checkpoint}});
  training::TrainingOptions& training = o.training;
  training::ModelFile file;
  if (!o.checkpoint.empty()) file = training::load_model_file(o.checkpoint);
  training::check_finite(o.checkpoint, file.state);
  if (!file.description.empty()) {
    if (o.given.contains("letters")) throw UsageError("--letters cannot be used with a file that describes its model");
    training.model = described_model(o, file);
  }
  training::set_training_options(training, o.given);
  if (file.description.empty() && training.model.has("vocab")) {
    if (training.letters < 2) throw UsageError(text("--letters: ", training.letters, ", an audit needs 2 or more"));
    training.model.set({"vocab", training.letters});
  }
  if (training.threads > 0) set_num_threads(training.threads);
  const AuditResult r = audit(training, file.state);
  reports::Document d = document_of(r);
  d.environment.command = given_command(command);
  show(d, o.quiet, o.report, o.json);
  return exit_code(r.verdict);
}

}  // namespace

Verb add_audit(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "audit",
      "Measure which directions of a model's parameters get no gradient, and how far the mean of its stream drifts");
  auto o = std::make_shared<AuditVerb>();
  o->training.model = training::ModelOptions(training::kGpt);
  o->training.batch = 4;
  command->add_option("--checkpoint", o->checkpoint,
                      "weights written by isonorm train or convert; the options below describe the model if the "
                      "file does not (default: initial weights)");
  add_training_options(*command, o->training, o->given, is_of_audits);
  command->add_option("--report", o->report, "write the result as an HTML page");
  add_json(*command, o->json);
  command->add_flag("-q,--quiet", o->quiet, "print the closing sentence only");
  command->footer(exit_codes("0 as theory says, 1 not", "5 undecided, 6 numbers are not finite"));
  for (const char* option : {"--report", "--json", "--quiet"}) command->get_option(option)->group("Output");
  lead_with(*command, {"--checkpoint", "--model", "--width", "--depth", "--context", "--batch"});
  return {command, [o, command] { return run_audit(*o, *command); }, {&audit_description()}};
}

}  // namespace isonorm::tools
