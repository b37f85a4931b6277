// isonorm evaluate MODEL: the test pass of a trained model.
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "core/system/mapped_file.h"
#include "core/system/parallel.h"
#include "data/text.h"
#include "io/json_text.h"
#include "tokenizers/tokenizer.h"
#include "tools/model_data.h"
#include "tools/output.h"
#include "tools/training_start.h"
#include "tools/verb.h"
#include "training/model_file.h"
#include "training/records/held_out.h"
#include "training/records/training_text.h"

namespace isonorm::tools {
namespace {

struct EvaluateOptions {
  std::string model, data, tokenizer, json;
  int64_t token_vocab = 0;
  bool is_text = false;
  TrainOptions training;  // threads and device; the rest is the file's
};

tokenizers::Tokenizer tokenizer_of(const EvaluateOptions& o) {
  if (!o.tokenizer.empty()) return tokenizers::Tokenizer(o.tokenizer);
  if (o.training.training.spec.tokenizer.empty())
    throw UsageError(text(o.model, " has no tokenizer: --tokenizer is needed"));
  return held_tokenizer(o.model, o.training.training.spec.tokenizer);
}

// The ids of a text as a file that data::TokenFile reads; it is gone when the program ends.
std::string ids_of_text(const std::string& path, tokenizers::Tokenizer tokenizer, int64_t vocab) {
  check(tokenizer.vocab() <= vocab, path, ": the tokenizer has ids up to ", tokenizer.vocab() - 1, ", the model has ",
        vocab);
  std::FILE* out = std::tmpfile();
  check_io(out != nullptr, path, ": no temporary file can be made for its ids");
  const data::TokenFile file{text("/proc/self/fd/", fileno(out)), vocab};
  read_mapped(path, [&](std::string_view in) {
    const Scope scope(path);
    tokenizer.encode(in, [&](std::span<const uint32_t> ids) {
      const std::string bytes = file.bytes_of(ids);
      std::fwrite(bytes.data(), bytes.size(), 1, out);
    });
  });
  check_io(std::fflush(out) == 0 && std::ferror(out) == 0, path, ": its ids cannot be written to a temporary file");
  return file.path;
}

int run(EvaluateOptions& o) {
  check_outputs({{"--json", o.json}}, {{"MODEL", o.model}, {"--tokenizer", o.tokenizer}, data_input(o.data)});
  if (!o.tokenizer.empty() && !o.is_text) throw UsageError("--tokenizer belongs to --text");
  if (o.is_text && o.token_vocab > 0) throw UsageError("--text and --token-vocab: --data is a text or a file of ids");
  if (o.is_text && o.data.empty()) throw UsageError("--text needs --data");
  check_device(o.training.training.device);
  const std::unique_ptr<nn::Module> model = load_finite_model(o.model);
  const SafetensorsFile file(o.model);
  training::TrainingOptions& t = o.training.training;
  {
    const Scope scope(o.model);
    set_as_trained(o.training, checkpoint_values(file));
    t.model = training::ModelOptions(training::model_description(file));
    t.spec = training::spec_of(file);
  }
  t.data = o.data, t.dtype = model->parameters().front().dtype();
  if (o.token_vocab > 0) t.token_vocab = o.token_vocab, t.spec.alphabet = {};
  if (t.threads > 0) set_num_threads(t.threads);
  const training::ModelShape shape = t.model.shape();
  if (o.is_text) {
    check(t.model.row().input == training::Input::characters, o.model, ": it holds no language model");
    t.data = ids_of_text(o.data, tokenizer_of(o), shape.vocab);
    t.token_vocab = shape.vocab, t.spec.alphabet = {};
  }
  check_data(t);
  std::optional<Scope> scope;
  if (o.is_text) scope.emplace(o.data);  // not the file of its ids
  const training::Source source(t);
  const training::ModelShape shown = source.options().model.shape();
  check(shape.vocab == shown.vocab && shape.image == shown.image && shape.channels == shown.channels, o.model,
        ": its model is of ",
        shape.vocab > 0 ? text(shape.vocab, " tokens")
                        : text(shape.image, " x ", shape.image, " x ", shape.channels, " images"),
        ", the data are of ",
        shape.vocab > 0 ? text(shown.vocab) : text(shown.image, " x ", shown.image, " x ", shown.channels));
  check(shown.classes <= shape.classes, o.data, ": there are ", shown.classes, " classes, the model has ",
        shape.classes);
  for (const std::string& note : spec_notes(t.spec, source)) tell("isonorm evaluate", text(o.model, ": ", note));
  model->to(t.device);
  nn::Module* models[] = {model.get()};
  const auto pass = training::test_pass(source, models, [](int, int) { return true; });
  check(pass->predictions > 0, o.data, ": there is nothing to test on");
  if (!std::isfinite(pass->scores[0].loss))
    throw Diverged(text(o.model, ": its loss is not a finite number: its weights are too large for ", t.dtype));
  const training::Evaluation e{0, pass->scores[0].loss, pass->scores[0].right, pass->predictions};
  print_and_write(evaluation_text(e, t.model.row().input) + "\n", [&] {
    if (!o.json.empty())
      write_file(
          o.json,
          dump({{"loss", e.loss}, {"accuracy", e.accuracy()}, {"right", e.right}, {"predictions", e.predictions}}) +
              "\n");
  });
  return kOk;
}

}  // namespace

Verb add_evaluate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("evaluate", "Test a trained model on data that it was not trained on");
  auto o = std::make_shared<EvaluateOptions>();
  command->add_option("MODEL", o->model, "a checkpoint of isonorm train, or a file that describes its model")
      ->required();
  command->add_option(
      "--data", o->data,
      "data as isonorm train takes them; the test is on their test images, or on the last tenth of the text");
  add_number(*command, "token_vocab", o->token_vocab,
             "--data is a file of token ids below this number, as isonorm train takes it (default: none)",
             training::from(1));
  command->add_flag("--text", o->is_text, "--data is a text, which the tokenizer turns into ids");
  command->add_option("--tokenizer", o->tokenizer,
                      "tokenizer for --text, as isonorm tokenize takes it (default: the one in MODEL)");
  command->add_option("--json", o->json, "write the numbers as a JSON object");
  add_threads(*command, o->training.training.threads);
  add_device(*command, o->training.training.device);
  command->footer(
      "Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 6 numbers are not finite, 70 no memory or threads, "
      "130 interrupted.");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
