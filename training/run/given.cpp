#include "training/run/given.h"

#include <algorithm>

#include "core/printed.h"
#include "core/system/failures.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "gpu/device.h"
#include "io/data/image_sets.h"
#include "training/source.h"
#include "training/fields.h"
#include "training/options/rows.h"

namespace isonorm::training {
namespace {

const ModelRow& model_named(const std::string& name) {
  const auto at = row_at(kModels, name);
  if (at == std::end(kModels))
    throw UsageError(text("--model: ", Shown{name, '"'}, " is not one of ", names_of(kModels, "|")));
  return **at;
}

// Checks the options that depend on each other.
void check_together(const TrainingOptions& o, const Given& given) {
  const Input input = o.model.row().input;
  if (given.contains("task") && (input != Input::pairs || !o.data.empty()))
    throw UsageError(text("--task requires --model ", models_with(Input::pairs, " or "), " without --data"));
  if (o.token_vocab > 0 && (input != Input::text || o.data.empty()))
    throw UsageError(text("--token-vocab requires --model ", models_with(Input::text, " or "), " with --data"));
  for (const char* of_texts : {"tokenizer", "ids", "text"})
    if (given.contains(of_texts) && (input != Input::text || o.data.empty()))
      throw UsageError(text(word_of(of_texts), " requires --model ", models_with(Input::text, " or "), " with --data"));
  if (o.ids && o.is_text) throw UsageError("--ids and --text: the data are token ids, or a text");
  if (!o.test_data.empty() && o.data.empty() && input != Input::images) throw UsageError("--test-data needs --data");
  if (given.contains("test_share") && !o.test_data.empty())
    throw UsageError("--test-share and --test-data: with --test-data nothing of --data is for test passes");
  if (given.contains("test_share") && input == Input::images && data::holds_images(o.data) &&
      data::has_own_tests(o.data))
    throw UsageError(text("--test-share: ", data::image_folder(o.data), " has its own test images"));
  if (given.contains("letters") && (input == Input::images || !o.data.empty()))
    throw UsageError("--letters requires a model of texts or pairs, without --data");
  for (const auto& [option, asked] :
       {std::pair{"--random-crop", o.random_crop > 0}, {"--random-flip", o.random_flip}, {"--mixup", o.mixup > 0}})
    if (asked && input != Input::images)
      throw UsageError(text(option, " requires --model ", models_with(Input::images, " or ")));
  if (o.row_length > 0 && !o.model.has("context"))
    throw UsageError(text("--row-length requires --model ", models_with("context", " or ")));
  if (o.row_length > 0 && o.row_length > o.model.context())
    throw UsageError(text("--row-length: ", o.row_length, " is above the model's context of ", o.model.context()));
  for (const char* rotary : {"rotary_base", "rotary_share"})
    if (given.contains(rotary) && !nn::rotates(o.model.transformer().positions))
      throw UsageError(text(word_of(rotary), " requires --positions rotary or rotary_halves"));
  if (o.model.transformer().positions == nn::Positions::alibi && !o.model.row().causal)
    throw UsageError(text("--positions alibi: a ", o.model.row().noun, " is not causal"));
  if (given.contains("norm_bias") && !o.model.transformer().affine)
    throw UsageError("--no-norm-bias requires --affine");
  if (given.contains("shared_norm") && !o.model.transformer().parallel)
    throw UsageError("--shared-norm requires --parallel");
  if (given.contains("qkv_bias") && o.model.transformer().bias) throw UsageError("--qkv-bias requires --no-bias");
  if (o.batch % o.accumulate != 0)
    throw UsageError(text("--accumulate: ", o.accumulate, " does not divide the batch of ", o.batch));
  if (given.contains("min_lr") && o.schedule == optim::Decay::constant)
    throw UsageError("--min-lr: --schedule constant has no other rate than --lr");
  if (o.min_lr > o.lr) throw UsageError(text("--min-lr: ", o.min_lr, " is above --lr ", o.lr));
  if (given.contains("threads")) check_number("--threads", o.threads, kThreads);
  try {
    o.model.complete();
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  check_device(o.device);
}

// Throws for a folder of text files for a language model, as nanoGPT has them.
void check_no_folder_of_texts(const std::string& folder, const char* option) {
  for (const std::string ending : {".bin", ".txt"}) {
    const std::string train = folder + "/train" + ending, val = folder + "/val" + ending;
    if (!file_exists(train)) continue;
    throw UsageError(text(option, ": ", folder, " is a folder: isonorm train --data ", shell_word(train),
                          file_exists(val) ? " --test-data " + shell_word(val) : "",
                          ending == ".bin" ? " --token-vocab N reads its token ids" : " reads its texts"));
  }
}

}  // namespace

std::string set_option(const Option& option, const std::string& word) {
  return !word.empty() && option.set(word) ? "" : text(Shown{word, '"'}, " is not ", option.expected);
}

void set_given(const std::vector<Option>& options, Given& given) {
  for (const Option& option : options) {
    const auto at = given.find(option.name);
    if (at == given.end()) continue;
    if (const std::string fault = set_option(option, at->second); !fault.empty())
      throw UsageError(text(word_of(option.name), ": ", fault));
    given.erase(at);
  }
}

void set_training_options(TrainingOptions& o, Given given) {
  if (const auto data = given.find("data"); data != given.end() && !given.contains("model")) {
    const std::string& path = data->second;
    if (const ModelRow* row = model_for(path)) given["model"] = row->name;
    // Otherwise the options below would be checked against a model that does not fit the data.
    check_io(given.contains("model") || path.empty() || file_exists(path), path, ": there is no such file or folder");
  }
  const Given all = given;
  if (const auto model = given.find("model"); model != given.end()) {
    if (const ModelRow& row = model_named(model->second); &row != &o.model.row()) {
      ModelOptions other(row);
      other.transformer() = o.model.transformer(), other.stream() = o.model.stream();
      o.model = other;
    }
    given.erase(model);
  }
  set_given(options_of(o), given);
  for (const auto& [name, word] : given) {
    const std::string models = models_with(name, " or ");
    if (models.empty()) throw UsageError(text("there is no option ", word_of(name)));
    throw UsageError(text(word_of(name), " requires --model ", models));
  }
  check_together(o, all);
}

void check_number(const char* option, int number, Limits limits) {
  if (!limits.allow(number)) throw UsageError(text(option, ": \"", number, "\" is not ", Word<int>::expected(limits)));
}

void check_names(const char* option, const std::vector<std::string>& given, const std::string& known) {
  for (const std::string& name : given) {
    if (text(", ", known, ",").find(text(", ", name, ",")) == std::string::npos)
      throw UsageError(text(option, ": ", Shown{name, '"'}, " is not one of ", known));
    if (std::ranges::count(given, name) > 1) throw UsageError(text(option, ": ", name, " is named twice"));
  }
}

void check_device(Device device, const char* option) {
  if (device == kCpu) return;
  const std::string why = gpu::why_none();
  check(why.empty(), option, " ", device, ": ", why);
  check(device.index < gpu::device_count(), option, " ", device, ": there are ", gpu::device_count(), " GPUs");
}

void check_kind(const ModelRow& model, const std::string& data, const char* option) {
  const std::optional<Input> kind = kind_of_data(data);
  if (kind && *kind != model.input)
    throw UsageError(text(option, ": ", data, " is ", data_noun(*kind), ", for ", models_with(*kind, " or "), "; ",
                          model.name, " reads ", data_noun(model.input)));
  if (!kind && !data.empty()) check_no_folder_of_texts(data, option);
}

void check_data(const TrainingOptions& o) {
  if (o.model.row().input == Input::text && o.data.empty() && o.test_data.empty())
    throw UsageError(text("a ", o.model.row().noun, " needs a text file: --data FILE"));
  check_kind(o.model.row(), o.data);
  check_kind(o.model.row(), o.test_data, "--test-data");
}

void check_warmup(const TrainingOptions& o) {
  if (const int warmup = o.warmup_steps(); warmup > o.step_count())
    throw UsageError(text("--warmup: ", warmup, " steps are more than the ", o.step_count(), " of the training"));
}

}  // namespace isonorm::training
