// isonorm evaluate MODEL: the test pass of a trained model.
#include <cstdio>
#include <memory>

#include "core/system/parallel.h"
#include "io/json_text.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/training_start.h"
#include "tools/verb.h"
#include "training/model_file.h"
#include "training/records/held_out.h"
#include "training/records/training_text.h"

namespace isonorm::tools {
namespace {

struct EvaluateOptions {
  std::string model, data, json;
  int64_t token_vocab = 0;
  TrainOptions training;  // threads and device; the rest is the file's
};

int run(EvaluateOptions& o) {
  check_outputs({{"--json", o.json}}, {{"MODEL", o.model}, data_input(o.data)});
  check_device(o.training.training.device);
  const std::unique_ptr<nn::Module> model = training::load_model(o.model);
  const SafetensorsFile file(o.model);
  training::TrainingOptions& t = o.training.training;
  {
    const Scope scope(o.model);
    set_as_trained(o.training, checkpoint_values(file));
    t.model = training::ModelOptions(training::model_description(file));
    t.alphabet = training::alphabet_of(file);
  }
  t.data = o.data, t.dtype = model->parameters().front().dtype();
  if (o.token_vocab > 0) t.token_vocab = o.token_vocab, t.alphabet = {};
  if (t.threads > 0) set_num_threads(t.threads);
  check_data(t);
  const training::ModelShape shape = t.model.shape();
  const training::Source source(t);
  const training::ModelShape shown = source.options().model.shape();
  check(shape.vocab == shown.vocab && shape.image == shown.image && shape.channels == shown.channels, o.model,
        ": its model is of ",
        shape.vocab > 0 ? text(shape.vocab, " tokens")
                        : text(shape.image, " x ", shape.image, " x ", shape.channels, " images"),
        ", the data are of ",
        shape.vocab > 0 ? text(shown.vocab) : text(shown.image, " x ", shown.image, " x ", shown.channels));
  model->to(t.device);
  catch_interrupt();
  nn::Module* models[] = {model.get()};
  const auto pass = training::test_pass(source, models, [](int, int) { return !interrupted(); });
  if (!pass) return kInterrupted;
  check(pass->predictions > 0, o.data, ": there is nothing to test on");
  const training::Evaluation e{0, pass->scores[0].loss, pass->scores[0].right, pass->predictions};
  std::printf("%s\n", evaluation_text(e, t.model.row().input).c_str());
  if (!o.json.empty())
    write_file(
        o.json,
        dump({{"loss", e.loss}, {"accuracy", e.accuracy()}, {"right", e.right}, {"predictions", e.predictions}}) +
            "\n");
  return kOk;
}

}  // namespace

Verb add_evaluate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("evaluate", "Test a trained model on what its training never saw");
  auto o = std::make_shared<EvaluateOptions>();
  command->add_option("MODEL", o->model, "a checkpoint of isonorm train, or a file of a model")->required();
  command->add_option("--data", o->data, "as isonorm train takes it: its test images, or the last tenth of the text");
  command->add_option("--token-vocab", o->token_vocab, "--data is a file of token ids, as isonorm train takes it");
  command->add_option("--json", o->json, "write the numbers as a JSON object");
  add_threads(*command, o->training.training.threads);
  add_device(*command, o->training.training.device);
  command->footer(
      "Exit codes: 0 printed, 2 usage, 3 bad input, 4 input/output, 70 no memory or threads, 130 interrupted.");
  return {command, [o] { return run(*o); }};
}

}  // namespace isonorm::tools
