#include "tools/options.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/system/parallel.h"
#include "gpu/device.h"
#include "training/fields.h"
#include "training/records/manifest.h"
#include "training/options/rows.h"

namespace isonorm::tools {
namespace {

using training::ModelRow;
using training::Option;
using training::TrainingOptions;

// The parser takes "-1" for the largest number, and cuts one that is too large.
std::string whole_number(const std::string& word) {
  uint64_t value = 0;
  const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool ok = error == std::errc() && last == word.data() + word.size();
  return ok ? std::string() : text("\"", word, "\" is not a whole number from 0 to 2^64 - 1");
}

CLI::Option* add_option(CLI::App& command, const Option& option, Given& given, std::string help) {
  const std::string name = option.name;
  if (option.flag()) {
    const bool on = option.text() == "true";  // then the flag turns it off
    return command
        .add_flag_function(
            training::word_of(on ? "no_" + name : name),
            [&given, name, on](int64_t said) { given[name] = (said > 0) != on ? "true" : "false"; }, help)
        ->check([](const std::string& word) {
          const bool ok = word == "true" || word == "false";
          return ok ? std::string() : text("\"", word, "\" is not true or false");
        });
  }
  CLI::Option* added = command.add_option_function<std::string>(
      training::word_of(name), [&given, name](const std::string& word) { given[name] = word; }, help);
  added->type_name(option.values);
  if (help.find("default") == std::string::npos) added->default_str(option.text());
  return added;
}

const ModelRow& model_named(const std::string& name) {
  const auto at = training::row_at(training::kModels, name);
  if (at == std::end(training::kModels))
    throw UsageError(text("--model: \"", name, "\" is not one of ", training::names_of(training::kModels, "|")));
  return **at;
}

// What one option alone cannot say.
void check_together(const TrainingOptions& o, const Given& given) {
  using training::Input, training::models_with;
  const Input input = o.model.row().input;
  if (given.contains("task") && (input != Input::pairs || !o.data.empty()))
    throw UsageError(text("--task belongs to --model ", models_with(Input::pairs, " or "), " without --data"));
  if (o.token_vocab > 0 && (input != Input::characters || o.data.empty()))
    throw UsageError(text("--token-vocab belongs to --model ", models_with(Input::characters, " or "), " with --data"));
  if (given.contains("letters") && (input == Input::images || !o.data.empty()))
    throw UsageError("--letters belongs to models of characters and of pairs without --data");
  if ((o.random_crop > 0 || o.random_flip) && input != Input::images)
    throw UsageError(text(o.random_flip ? "--random-flip" : "--random-crop", " belongs to --model ",
                          models_with(Input::images, " or ")));
  for (const char* rotary : {"rotary_base", "rotary_share"})
    if (given.contains(rotary) && !nn::rotates(o.model.transformer().positions))
      throw UsageError(text(training::word_of(rotary), " belongs to --positions rotary or rotary_halves"));
  if (o.model.transformer().positions == nn::Positions::alibi && !o.model.row().causal)
    throw UsageError(text("--positions alibi: a ", o.model.row().noun, " is not causal"));
  if (given.contains("norm_bias") && !o.model.transformer().affine)
    throw UsageError("--no-norm-bias belongs to --affine");
  if (given.contains("shared_norm") && !o.model.transformer().parallel)
    throw UsageError("--shared-norm belongs to --parallel");
  if (given.contains("qkv_bias") && o.model.transformer().bias) throw UsageError("--qkv-bias belongs to --no-bias");
  if (o.batch % o.accumulate != 0)
    throw UsageError(text("--accumulate: ", o.accumulate, " does not divide the batch of ", o.batch));
  if (given.contains("min_lr") && o.schedule == optim::Decay::constant)
    throw UsageError("--min-lr: --schedule constant has no other rate than --lr");
  if (o.min_lr > o.lr) throw UsageError(text("--min-lr: ", o.min_lr, " is above --lr ", o.lr));
  if (given.contains("threads")) check_threads(o.threads);
  try {
    o.model.complete();
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  check_device(o.device);
}

}  // namespace

void add_options(CLI::App& command, const std::vector<Option>& options, Given& given, const Wanted& wanted,
                 const char* group) {
  for (const Option& option : options)
    if (!option.help.empty() && (!wanted || wanted(option.name)))
      add_option(command, option, given, option.help)->group(group);
}

void add_training_options(CLI::App& command, const TrainingOptions& defaults, Given& given, const Wanted& wanted) {
  TrainingOptions o = defaults;
  command
      .add_option_function<std::string>(
          "--model", [&given](const std::string& word) { given["model"] = word; }, "model")
      ->type_name(training::names_of(training::kModels, "|"))
      ->group("Model")
      ->default_str(o.model.row().name);
  std::vector<std::string> there;
  for (const ModelRow* row : training::kModels) {
    training::ModelOptions model = &o.model.row() == row ? o.model : training::ModelOptions(*row);
    for (const Option& option : model.options()) {
      if (option.help.empty() || (wanted && !wanted(option.name)) || std::ranges::count(there, option.name) > 0)
        continue;
      there.push_back(option.name);
      const std::string models = training::models_with(option.name);
      const bool all = std::ranges::all_of(training::kModels, [&](const ModelRow* r) { return has(*r, option.name); });
      add_option(command, option, given, all ? option.help : text(models, ": ", option.help))->group("Model");
    }
  }
  training::Fields f;
  fields(o, f);
  add_options(command, f.options, given, wanted, "Training");
}

void set_given(const std::vector<Option>& options, Given& given) {
  for (const Option& option : options) {
    const auto at = given.find(option.name);
    if (at == given.end()) continue;
    if (at->second.empty() || !option.set(at->second))
      throw UsageError(text(training::word_of(option.name), ": \"", at->second, "\" is not ", option.expected));
    given.erase(at);
  }
}

void set_training_options(TrainingOptions& o, Given given) {
  const Given all = given;
  if (const auto model = given.find("model"); model != given.end()) {
    if (const ModelRow& row = model_named(model->second); &row != &o.model.row()) {
      training::ModelOptions other(row);
      other.transformer() = o.model.transformer(), other.stream() = o.model.stream();
      o.model = other;
    }
    given.erase(model);
  }
  set_given(options_of(o), given);
  for (const auto& [name, word] : given)
    throw UsageError(text(training::word_of(name), " belongs to --model ", training::models_with(name, " or ")));
  check_together(o, all);
}

std::function<std::string(const std::string&)> one_of(std::span<const streams::Form> forms) {
  return [forms](const std::string& name) {
    for (streams::Form f : forms)
      if (name == name_of(f)) return std::string();
    return text("\"", name, "\" is not one of ", streams::listed(forms));
  };
}

void check_names(const char* option, const std::vector<std::string>& given, const std::string& known) {
  for (const std::string& name : given) {
    if (text(", ", known, ",").find(text(", ", name, ",")) == std::string::npos)
      throw UsageError(text(option, ": \"", name, "\" is not one of ", known));
    if (std::ranges::count(given, name) > 1) throw UsageError(text(option, ": ", name, " is named twice"));
  }
}

void add_seed(CLI::App& command, uint64_t& seed, const std::string& help) {
  command.add_option("--seed", seed, help)->capture_default_str()->check(whole_number);
}

void add_threads(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "threads (default: all)");
}

void add_device_option(CLI::App& command, const char* name, const std::string& help, std::function<void(Device)> take) {
  const auto read = [name, take = std::move(take)](const std::string& word) {
    const std::optional<Device> device = gpu::device_of(word);
    if (!device) throw CLI::ValidationError(name, text("\"", word, "\" is no device, expected cpu, cuda or cuda:N"));
    take(*device);
  };
  command.add_option_function<std::string>(name, read, help)->type_name("DEVICE");
}

void add_device(CLI::App& command, Device& device) {
  add_device_option(command, "--device", "cpu (default), cuda or cuda:N: where it is computed",
                    [&device](Device d) { device = d; });
}

void check_device(Device device, const char* option) {
  if (device == kCpu) return;
  const std::string why = gpu::why_none();
  check(why.empty(), option, " ", device, ": ", why);
  check(device.index < gpu::device_count(), option, " ", device, ": there are ", gpu::device_count(), " GPUs");
}

void check_threads(int threads) {
  if (threads < 1 || threads > kMostThreads)
    throw UsageError(text("--threads: ", threads, " is not a whole number from 1 to ", kMostThreads));
}

void check_data(const TrainingOptions& o) {
  if (o.model.row().input == training::Input::characters && o.data.empty())
    throw UsageError(text("--model ", o.model.row().name, " needs a text file: --data FILE"));
}

void add_output_options(CLI::App& command, OutputOptions& o, const std::string& what, const std::string& rest) {
  command.add_option("--report", o.report, text("write ", what, " as an HTML page"));
  command.add_option("--json", o.json, text("write ", what, " as a JSON object"));
  command.add_option("--log", o.log, "write a JSON line per step");
  command.add_flag("-q,--quiet", o.quiet, text("print the ", rest, " only"));
}

std::string given_command(const CLI::App& command) {
  std::string all = "isonorm " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (name == "--report" || name == "--json" || name == "--quiet") continue;
    const bool flag = option->get_expected_max() == 0;
    for (const std::string& word : option->results())
      all += text(" ", name, flag && word == "true" ? "" : text(flag ? "=" : " ", training::quoted(word)));
  }
  return all;
}

void check_output_options(const OutputOptions& o, std::vector<NamedFile> inputs, std::vector<NamedFile> more) {
  more.push_back({"--report", o.report}), more.push_back({"--json", o.json});
  more.push_back({"--log", o.log, Written::in_place});
  check_outputs(more, inputs);
}

}  // namespace isonorm::tools
