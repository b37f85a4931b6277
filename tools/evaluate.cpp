// isonorm evaluate MODEL: the test pass of a trained model.
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "core/printed.h"
#include "core/system/parallel.h"
#include "io/data/image_sets.h"
#include "equivalence/services/model_data.h"
#include "io/data/published_sets.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/train_options.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/records/held_out.h"
#include "training/records/training_log.h"
#include "training/records/training_text.h"
#include "training/source.h"
#include "training/text_data.h"

namespace isonorm::tools {
namespace {

struct EvaluateOptions {
  std::string model, data, test_data, tokenizer, json;
  int64_t token_vocab = 0;
  std::optional<double> test_share;
  std::optional<data::IdWidth> ids;
  bool is_text = false;
  training::TrainerOptions training;  // threads and device; the rest comes from the file
};

struct Evaluated : training::EvaluationOn {
  std::string model = {};
  std::optional<int64_t> tokens = {}, bytes = {};
};

const reports::Schema<Evaluated>& evaluate_schema() {
  static const reports::Schema<Evaluated> schema{
      "evaluate", "The test of a model.",
      training::evaluation_fields<Evaluated>()
          .add("model", &Evaluated::model, "its file")
          .add("tokens", &Evaluated::tokens, "of the tested file; null: it is no text")
          .add("bytes", &Evaluated::bytes, "of the tested file; null: it is no text")};
  return schema;
}

void check_options(const EvaluateOptions& o) {
  if (o.ids && o.is_text) throw UsageError("--ids and --text: the data are token ids, or a text");
  if (!o.test_data.empty() && o.test_share) throw UsageError("--test-share belongs to --data, not to --test-data");
  if (!o.test_data.empty() && !o.data.empty()) throw UsageError("--test-data excludes --data");
}

// A warning if the model was trained on its test data; else empty. checksum: of the test data; tested: share of the
// data that the test uses.
std::string trained_on(const training::DataSpec& spec, const std::string& checksum, double tested) {
  const double held = spec.data == checksum ? spec.test_share.value_or(training::kOldTestShare) : 1;
  if (held == 0) return ", but the model was trained on all of the file";
  if (tested > held)
    return text(", but the model was trained on the first ", printed("%.6g", 100 * (1 - held)), " % of the file");
  if (spec.earlier_data.find(checksum) != std::string::npos)
    return ", but the weights that the training began with were trained on the file";
  return "";
}

// Sets the test data: the whole of a file that the model was not trained on, or the held-out share of its training
// data. Returns a text that says which.
std::string take_data(const EvaluateOptions& o, training::TrainingOptions& t) {
  t.data = o.data, t.test_data = o.test_data;
  t.test_share = o.test_share.value_or(t.spec.test_share.value_or(training::kOldTestShare));
  const std::string& path = o.test_data.empty() ? o.data : o.test_data;
  if (path.empty()) return "";
  const bool own_tests = t.model.row().input == training::Input::images && data::has_own_tests(path);
  if (own_tests && o.test_share) throw UsageError(text("--test-share: ", path, " has its own test images"));
  const std::string checksum = "sha256:" + training::data_sha256(t.model.row().input, path);
  if (own_tests) t.test_share = 0;  // no training images are held out
  if (own_tests && t.spec.data == checksum) return "";
  if (!t.test_data.empty()) return "all of it" + trained_on(t.spec, checksum, 1);
  const std::string share = text("the last ", printed("%.6g", 100 * t.test_share), " %");
  const bool trained = t.spec.data == checksum;
  const double held = t.spec.test_share.value_or(training::kOldTestShare);
  check(!trained || t.test_share <= held, o.data, ": --test-share ", t.test_share, " is more than ", held,
        ", the share that the training held out; to test on data of the training anyway, use --test-data");
  const std::string but = trained_on(t.spec, checksum, t.test_share);
  if (o.test_share) return share + but;
  if (!trained) {
    t.test_data = o.data, t.data = "";
    return text("all of it", !but.empty()          ? but
                             : t.spec.data.empty() ? ", since the model's training data are unknown"
                                                   : ", since it is not the file of the training");
  }
  check(t.test_share > 0, o.data, ": the model was trained on all of it; to test on it anyway, use --test-data");
  return share + (but.empty() ? ", which the model was not trained on" : but);
}

// Throws if no data are given and the default does not fit the model: Fashion-MNIST for images, generated pairs for a
// translator.
void check_default_data(const EvaluateOptions& o, const training::TrainingOptions& t) {
  if (!o.data.empty() || !o.test_data.empty()) return;
  if (t.model.row().input == training::Input::pairs && !t.spec.alphabet.empty())
    throw UsageError("--data is needed: the model was trained on a folder of pairs");
  if (t.model.row().input != training::Input::images) return;
  const std::vector<std::string>& classes = t.spec.classes;
  if (!classes.empty() && classes != data::published_classes(data::kFashionMnistDir))
    throw UsageError(
        text("--data is needed: the model has the classes ", data::class_list(classes), ", not Fashion-MNIST's"));
}

int run_evaluate(EvaluateOptions& o, const CLI::App& command) {
  check_outputs({{"--json", o.json}},
                {{"MODEL", o.model}, {"--tokenizer", o.tokenizer}, data_input(o.data), test_data_input(o.test_data)});
  check_options(o);
  training::check_device(o.training.training.device);
  const std::unique_ptr<nn::Module> model = services::load_finite_model(o.model);
  const SafetensorsFile file(o.model);
  training::TrainingOptions& t = o.training.training;
  {
    const Scope scope(o.model);
    training::set_as_trained(o.training, checkpoint_values(file));
    t.model = training::ModelOptions(training::model_description(file));
    t.spec = training::spec_of(file);
    t.row_length = t.spec.row_length;
    check(t.row_length <= t.model.context(), "its rows have ", t.row_length, " tokens, its context is ",
          t.model.context());
  }
  t.dtype = model->parameters().front().dtype();
  if (t.threads > 0) set_num_threads(t.threads);
  const training::ModelShape shape = t.model.shape();
  const bool of_texts = t.model.row().input == training::Input::text;
  for (const auto& [option, given] : {std::pair{"--text", o.is_text},
                                      {"--ids", o.ids.has_value()},
                                      {"--tokenizer", !o.tokenizer.empty()},
                                      {"--token-vocab", o.token_vocab > 0}})
    check(!given || of_texts, o.model, ": it holds no language model, which ", option, " belongs to");
  training::check_kind(t.model.row(), o.data);
  training::check_kind(t.model.row(), o.test_data, "--test-data");
  check_default_data(o, t);
  const std::string part = take_data(o, t);
  if (of_texts) {
    services::check_tokenizer(o.tokenizer, t.spec, o.model);
    t.ids = o.ids, t.is_text = o.is_text, t.tokenizer = o.tokenizer;
    if (o.token_vocab > 0 || !o.tokenizer.empty()) t.spec.alphabet = {};
    if (!o.tokenizer.empty()) t.spec.tokenizer = {};
    if (o.token_vocab > 0)
      t.token_vocab = o.token_vocab;
    else if (!o.tokenizer.empty())
      t.token_vocab = shape.vocab;
    else if (t.token_vocab == 0)
      t.token_vocab =
          training::token_vocab_of(t.spec, shape.vocab, o.test_data.empty() ? o.data : o.test_data, o.ids.has_value());
  }
  training::check_data(t);
  const training::Source source(t, training::Purpose::evaluation);
  const training::ModelShape shown = source.options().model.shape();
  check(shape.vocab == shown.vocab && shape.image == shown.image && shape.channels == shown.channels, o.model,
        ": its model is of ",
        shape.vocab > 0 ? text(shape.vocab, " tokens")
                        : text(shape.image, " x ", shape.image, " x ", shape.channels, " images"),
        ", the data are of ",
        shape.vocab > 0 ? text(shown.vocab) : text(shown.image, " x ", shown.image, " x ", shown.channels));
  check(shown.classes <= shape.classes, o.data, ": there are ", shown.classes, " classes, the model has ",
        shape.classes);
  for (const std::string& note : training::spec_notes(t.spec, source))
    tell("isonorm evaluate", text(o.model, ": ", note));
  model->to(t.device);
  nn::Module* models[] = {model.get()};
  const auto pass = training::test_pass(source, models, [](int, int) { return true; });
  check(pass->predictions > 0, o.data, o.test_data, ": there is nothing to test on");
  if (!std::isfinite(pass->scores[0].loss))
    throw Diverged(text(o.model, ": its loss is not a finite number: its weights are too large for ", t.dtype));
  const training::Input input = t.model.row().input;
  Evaluated e{{{0, pass->scores[0].loss, pass->scores[0].right, pass->predictions}, input}, o.model};
  if (source.test_file_tokens() > 0) e.tokens = source.test_file_tokens(), e.bytes = source.test_file_bytes();
  std::string said, rows;
  if (of_texts && source.context() < t.model.context())
    rows = text(", in rows of ", source.context(), " tokens as in the training; the model's context is ",
                t.model.context());
  for (const std::string& reading : source.readings()) said += text(reading, "; ", part, rows, "\n");
  if (input == training::Input::images && t.data.empty() && !o.data.empty() && !t.spec.data.empty())
    said += text(o.data, ": all ", e.predictions,
                 " images for tests; the training's data have another checksum, but may have some of these images\n");
  services::warn_of_averages(file, o.model);
  said += evaluation_text(e, input) + "\n";
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
  add_threads(*command, o->training.training.threads);
  add_device(*command, o->training.training.device);
  command->footer(
      "Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 6 numbers are not finite, 70 no memory or threads, "
      "130 interrupted.");
  return {command, [o, command] { return run_evaluate(*o, *command); }, {&evaluate_schema()}};
}

}  // namespace isonorm::tools
