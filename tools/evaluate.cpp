// isonorm evaluate MODEL: the test pass of a trained model.
#include "equivalence/services/named_files.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/run/evaluate_file.h"

namespace isonorm::tools {
namespace {

using training::EvaluatedFile;

struct EvaluateOptions : training::FileEvaluation {
  std::string json = {};
};

const reports::Schema<EvaluatedFile>& evaluate_schema() {
  static const reports::Schema<EvaluatedFile> schema{
      "evaluate", "The test of a model.",
      training::evaluation_fields<EvaluatedFile>()
          .add("model", &EvaluatedFile::model, "its file")
          .add("tokens", &EvaluatedFile::tokens, "of the tested file; null: it is no text")
          .add("bytes", &EvaluatedFile::bytes, "of the tested file; null: it is no text")};
  return schema;
}

int run_evaluate(const EvaluateOptions& o, const CLI::App& command) {
  check_outputs({{"--json", o.json}},
                {{"MODEL", o.model}, {"--tokenizer", o.tokenizer}, data_input(o.data), test_data_input(o.test_data)});
  const EvaluatedFile e = training::evaluate_file(o);
  const std::string said = text(e.data_text, evaluation_text(e, e.input), "\n");
  print_and_write(said, [&] { write_json(o.json, evaluate_schema()(e), said, command); });
  return kOk;
}

}  // namespace

Verb add_evaluate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("evaluate", "Test a trained model on data that it was not trained on");
  auto o = std::make_shared<EvaluateOptions>();
  command->add_option("MODEL", o->model, "a checkpoint of isonorm train, or a file that describes its model")
      ->required();
  command->add_option("--data", o->data,
                      "data, as for isonorm train. Tests on the data's own test images if there are any, else on all "
                      "of the data or, if "
                      "the model was trained on them, on the held-out share");
  command->add_option("--test-data", o->test_data, "instead of --data: test on all of these");
  add_number(*command, "test_share", o->test_share, "test on this share at the end of --data (default: see --data)",
             training::kProbability);
  add_number(*command, "token_vocab", o->token_vocab,
             "the data are a file of token ids below this number (default: the model's number of tokens)",
             training::from(1));
  add_number(*command, "ids", o->ids, "the data are token ids of this width (default: the bytes of the file decide)");
  command->add_flag("--text", o->is_text, "the data are a text, whatever bytes they have");
  command->add_option("--tokenizer", o->tokenizer,
                      "tokenizer of a text, as isonorm tokenize takes it (default: the one in MODEL)");
  add_json(*command, o->json);
  add_threads(*command, o->threads);
  add_device(*command, o->device);
  command->footer(exit_codes("0 printed", "6 numbers are not finite"));
  return {command, [o, command] { return run_evaluate(*o, *command); }, {&evaluate_schema()}};
}

}  // namespace isonorm::tools
