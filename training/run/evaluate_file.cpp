#include "training/run/evaluate_file.h"

#include <cmath>
#include <memory>

#include "core/printed.h"
#include "core/system/failures.h"
#include "core/system/parallel.h"
#include "core/system/warning.h"
#include "io/checkpoint.h"
#include "io/data/image_sets.h"
#include "io/data/published_sets.h"
#include "training/model_file.h"
#include "training/records/held_out.h"
#include "training/run/given.h"
#include "training/run/trainer_options.h"
#include "training/source.h"
#include "training/text_data.h"

namespace isonorm::training {
namespace {

void check_evaluation(const FileEvaluation& o) {
  if (o.ids && o.is_text) throw UsageError("--ids and --text: the data are token ids, or a text");
  if (!o.test_data.empty() && o.test_share)
    throw UsageError("--test-share requires --data and cannot be used with --test-data");
  if (!o.test_data.empty() && !o.data.empty()) throw UsageError("--test-data excludes --data");
}

// A warning if the model was trained on its test data; else empty. checksum: of the test data; tested: share of the
// data that the test uses.
std::string trained_on(const DataSpec& spec, const std::string& checksum, double tested) {
  const double held = spec.data == checksum ? spec.test_share.value_or(kOldTestShare) : 1;
  if (held == 0) return ", but the model was trained on all of the file";
  if (tested > held)
    return text(", but the model was trained on the first ", printed("%.6g", 100 * (1 - held)), " % of the file");
  if (spec.earlier_data.find(checksum) != std::string::npos)
    return ", but the weights that the training began with were trained on the file";
  return "";
}

// Sets the test data: the whole of a file that the model was not trained on, or the held-out share of its training
// data. Returns a text that says which.
std::string take_data(const FileEvaluation& o, TrainingOptions& t) {
  t.data = o.data, t.test_data = o.test_data;
  t.test_share = o.test_share.value_or(t.spec.test_share.value_or(kOldTestShare));
  const std::string& path = o.test_data.empty() ? o.data : o.test_data;
  if (path.empty()) return "";
  const bool own_tests = t.model.row().input == Input::images && data::has_own_tests(path);
  if (own_tests && o.test_share) throw UsageError(text("--test-share: ", path, " has its own test images"));
  const std::string checksum = "sha256:" + data_sha256(t.model.row().input, path);
  if (own_tests) t.test_share = 0;  // no training images are held out
  if (own_tests && t.spec.data == checksum) return "";
  if (!t.test_data.empty()) return "all of it" + trained_on(t.spec, checksum, 1);
  const std::string share = text("the last ", printed("%.6g", 100 * t.test_share), " %");
  const bool trained = t.spec.data == checksum;
  const double held = t.spec.test_share.value_or(kOldTestShare);
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
void check_default_data(const FileEvaluation& o, const TrainingOptions& t) {
  if (!o.data.empty() || !o.test_data.empty()) return;
  if (t.model.row().input == Input::pairs && !t.spec.alphabet.empty())
    throw UsageError("--data is needed: the model was trained on a folder of pairs");
  if (t.model.row().input != Input::images) return;
  const std::vector<std::string>& classes = t.spec.classes;
  if (!classes.empty() && classes != data::published_classes(data::kFashionMnistDir))
    throw UsageError(
        text("--data is needed: the model has the classes ", data::class_list(classes), ", not Fashion-MNIST's"));
}

}  // namespace

EvaluatedFile evaluate_file(const FileEvaluation& o) {
  check_evaluation(o);
  check_device(o.device);
  const std::unique_ptr<nn::Module> model = load_finite_model(o.model);
  const SafetensorsFile file(o.model);
  TrainerOptions trained;
  TrainingOptions& t = trained.training;
  t.device = o.device, t.threads = o.threads;
  {
    const Scope scope(o.model);
    set_as_trained(trained, checkpoint_values(file));
    t.model = ModelOptions(model_description(file));
    t.spec = spec_of(file);
    t.row_length = t.spec.row_length;
    check(t.row_length <= t.model.context(), "its rows have ", t.row_length, " tokens, its context is ",
          t.model.context());
  }
  t.dtype = model->parameters().front().dtype();
  if (t.threads > 0) set_num_threads(t.threads);
  const ModelShape shape = t.model.shape();
  const bool of_texts = t.model.row().input == Input::text;
  for (const auto& [option, given] : {std::pair{"--text", o.is_text},
                                      {"--ids", o.ids.has_value()},
                                      {"--tokenizer", !o.tokenizer.empty()},
                                      {"--token-vocab", o.token_vocab > 0}})
    check(!given || of_texts, o.model, ": ", option, " requires a language model, and this file holds none");
  check_kind(t.model.row(), o.data);
  check_kind(t.model.row(), o.test_data, "--test-data");
  check_default_data(o, t);
  const std::string part = take_data(o, t);
  if (of_texts) {
    check_tokenizer(o.tokenizer, t.spec, o.model);
    t.ids = o.ids, t.is_text = o.is_text, t.tokenizer = o.tokenizer;
    if (o.token_vocab > 0 || !o.tokenizer.empty()) t.spec.alphabet = {};
    if (!o.tokenizer.empty()) t.spec.tokenizer = {};
    if (o.token_vocab > 0)
      t.token_vocab = o.token_vocab;
    else if (!o.tokenizer.empty())
      t.token_vocab = shape.vocab;
    else if (t.token_vocab == 0)
      t.token_vocab =
          token_vocab_of(t.spec, shape.vocab, o.test_data.empty() ? o.data : o.test_data, o.ids.has_value());
  }
  check_data(t);
  const Source source(t, Purpose::evaluation);
  const ModelShape shown = source.options().model.shape();
  check(shape.vocab == shown.vocab && shape.image == shown.image && shape.channels == shown.channels, o.model,
        ": its model is of ",
        shape.vocab > 0 ? text(shape.vocab, " tokens")
                        : text(shape.image, " x ", shape.image, " x ", shape.channels, " images"),
        ", the data are of ",
        shape.vocab > 0 ? text(shown.vocab) : text(shown.image, " x ", shown.image, " x ", shown.channels));
  check(shown.classes <= shape.classes, o.data, ": there are ", shown.classes, " classes, the model has ",
        shape.classes);
  for (const std::string& note : spec_notes(t.spec, source)) warn(text(o.model, ": ", note));
  model->to(t.device);
  nn::Module* models[] = {model.get()};
  const auto pass = test_pass(source, models, [](int, int) { return true; });
  check(pass->predictions > 0, o.data, o.test_data, ": there is nothing to test on");
  if (!std::isfinite(pass->scores[0].loss))
    throw Diverged(text(o.model, ": its loss is not a finite number: its weights are too large for ", t.dtype));
  const Input input = t.model.row().input;
  EvaluatedFile e{{{0, pass->scores[0].loss, pass->scores[0].right, pass->predictions}, input}, o.model};
  if (source.test_file_tokens() > 0) e.tokens = source.test_file_tokens(), e.bytes = source.test_file_bytes();
  std::string rows;
  if (of_texts && source.context() < t.model.context())
    rows = text(", in rows of ", source.context(), " tokens as in the training; the model's context is ",
                t.model.context());
  for (const std::string& reading : source.readings()) e.data_text += text(reading, "; ", part, rows, "\n");
  if (input == Input::images && t.data.empty() && !o.data.empty() && !t.spec.data.empty())
    e.data_text +=
        text(o.data, ": all ", e.predictions,
             " images for tests; the training's data have another checksum, but may have some of these images\n");
  warn_of_averages(file, o.model);
  return e;
}

}  // namespace isonorm::training
