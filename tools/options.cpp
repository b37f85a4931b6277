#include "tools/options.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "gpu/device.h"
#include "training/fields.h"
#include "training/options/rows.h"
#include "training/records/manifest.h"

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
        ->group(option.group)
        ->check([](const std::string& word) {
          const bool ok = word == "true" || word == "false";
          return ok ? std::string() : text("\"", word, "\" is not true or false");
        });
  }
  CLI::Option* added = command.add_option_function<std::string>(
      training::word_of(name), [&given, name](const std::string& word) { given[name] = word; }, help);
  added->type_name(option.values)->group(option.group);
  if (help.find("default") == std::string::npos) added->default_str(option.text());
  return added;
}

}  // namespace

void add_options(CLI::App& command, const std::vector<Option>& options, Given& given, const Wanted& wanted) {
  for (const Option& option : options)
    if (!option.help.empty() && (!wanted || wanted(option.name))) add_option(command, option, given, option.help);
}

void add_training_options(CLI::App& command, const TrainingOptions& defaults, Given& given, const Wanted& wanted) {
  TrainingOptions o = defaults;
  command
      .add_option_function<std::string>(
          "--model", [&given](const std::string& word) { given["model"] = word; },
          text("model (default: the model that reads --data; without --data ", o.model.row().name, ")"))
      ->type_name(training::names_of(training::kModels, "|"))
      ->group("Model");
  std::vector<std::string> there;
  for (const ModelRow* row : training::kModels) {
    training::ModelOptions model = &o.model.row() == row ? o.model : training::ModelOptions(*row);
    for (const Option& option : model.options()) {
      if (option.help.empty() || (wanted && !wanted(option.name)) || std::ranges::count(there, option.name) > 0)
        continue;
      there.push_back(option.name);
      const std::string models = training::models_with(option.name);
      const bool all = std::ranges::all_of(training::kModels, [&](const ModelRow* r) { return has(*r, option.name); });
      add_option(command, option, given, all ? option.help : text(models, ": ", option.help));
    }
  }
  training::Fields f;
  fields(o, f);
  add_options(command, f.options, given, wanted);
}

CLI::Validator one_of(std::span<const streams::Form> forms) {
  std::string names;  // for help: "{layer_norm,rms_norm}"
  for (streams::Form f : forms) names += text(names.empty() ? "{" : ",", name_of(f));
  const auto check = [forms](const std::string& name) {
    for (streams::Form f : forms)
      if (name == name_of(f)) return std::string();
    return text("\"", name, "\" is not one of ", streams::listed(forms));
  };
  return {check, names + "}"};
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
  add_device_option(command, "--device", "device that computes: cpu (default), cuda or cuda:N",
                    [&device](Device d) { device = d; });
}

void add_output_options(CLI::App& command, OutputOptions& o, const std::string& what, const std::string& rest) {
  command.add_option("--report", o.report, text("write ", what, " as an HTML page"));
  command.add_option("--json", o.json, text("write ", what, " as a JSON object"));
  command.add_option("--log", o.log, "write a JSON line per step");
  command.add_flag("-q,--quiet", o.quiet, text("print the ", rest, " only"));
  for (const char* option : {"--report", "--json", "--log", "--quiet"}) command.get_option(option)->group("Output");
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
