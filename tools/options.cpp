#include "tools/options.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/stopwatch.h"
#include "gpu/device.h"
#include "training/fields.h"
#include "training/options/rows.h"
#include "training/records/manifest.h"

namespace isonorm::tools {
namespace {

const Stopwatch kSinceStart;  // of the program

using training::ModelRow;
using training::Option;
using training::TrainingOptions;

using Take = std::function<void(const std::string&)>;

CLI::Option* add_word(CLI::App& command, const Option& option, const std::string& help, const Take& take) {
  CLI::Option* added = command.add_option_function<std::string>(training::word_of(option.name), take, help);
  added->type_name(option.values);
  if (help.find("default") == std::string::npos) added->default_str(option.text());
  return added;
}

// Reads bytes: "4096", "5.5 GB", "1gib"; 0 if the word is not a size or is larger than any file.
int64_t size_of(const std::string& word) {
  constexpr std::string_view kPowers = "kmgtpe";
  const size_t digits = std::min(word.find_first_not_of("0123456789."), word.size());
  double size = 0;
  if (!read_number(word.substr(0, digits), size, std::chars_format::fixed)) return 0;
  std::string unit = word.substr(std::min(word.find_first_not_of(' ', digits), word.size()));
  std::ranges::transform(unit, unit.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (unit.ends_with('b')) unit.pop_back();
  const bool binary = unit.size() == 2 && unit[1] == 'i';
  if (binary) unit.pop_back();
  if (!unit.empty()) {
    const size_t power = unit.size() == 1 ? kPowers.find(unit[0]) : kPowers.npos;
    if (power == kPowers.npos) return 0;
    size *= std::pow(binary ? 1024 : 1000, static_cast<double>(power + 1));
  }
  return size < 0x1p63 ? static_cast<int64_t>(size) : 0;
}

CLI::Option* add_option(CLI::App& command, const Option& option, training::Given& given, std::string help) {
  const std::string name = option.name;
  if (option.flag()) {
    const bool on = option.text() == "true";  // then the flag is --no-NAME
    return command
        .add_flag_function(
            training::word_of(on ? "no_" + name : name),
            [&given, name, on](int64_t said) { given[name] = (said > 0) != on ? "true" : "false"; }, help)
        ->group(option.group)
        ->check([](const std::string& word) {
          const bool ok = word == "true" || word == "false";
          return ok ? std::string() : text(Shown{word, '"'}, " is not true or false");
        });
  }
  CLI::Option* added = add_word(command, option, help, [&given, name](const std::string& word) { given[name] = word; });
  return added->group(option.group);
}

}  // namespace

void add_options(CLI::App& command, const std::vector<Option>& options, training::Given& given, const Wanted& wanted) {
  for (const Option& option : options)
    if (!option.help.empty() && (!wanted || wanted(option.name))) add_option(command, option, given, option.help);
}

void add_training_options(CLI::App& command, const TrainingOptions& defaults, training::Given& given,
                          const Wanted& wanted) {
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

CLI::Validator one_of(const streams::Forms& forms) {
  std::string names;  // for help: "{layer_norm,rms_norm}"
  for (streams::Form f : forms) names += text(names.empty() ? "{" : ",", name_of(f));
  const auto check = [forms](const std::string& name) {
    for (streams::Form f : forms)
      if (name == name_of(f)) return std::string();
    return text(Shown{name, '"'}, " is not one of ", streams::listed(forms));
  };
  return {check, names + "}"};
}

CLI::Option* add_value(CLI::App& command, const Option& option) {
  return add_word(command, option, option.help, [option](const std::string& word) {
    if (const std::string fault = training::set_option(option, word); !fault.empty())
      throw CLI::ValidationError(training::word_of(option.name), fault);
  });
}

void add_shard_size(CLI::App& command, const std::string& help, std::function<void(int64_t)> take) {
  const auto read = [take = std::move(take)](const std::string& word) {
    const int64_t size = size_of(word);
    if (size == 0)
      throw CLI::ValidationError(
          "--max-shard-size",
          text(Shown{word, '"'}, " is not a size from 1 byte to below 2^63, such as 5GB or 5.5GiB"));
    take(size);
  };
  command.add_option_function<std::string>("--max-shard-size", read, help)->type_name("SIZE");
}

void add_seed(CLI::App& command, uint64_t& seed, const std::string& help) { add_number(command, "seed", seed, help); }

void add_threads(CLI::App& command, int& threads) {
  add_number(command, "threads", threads, "threads (default: all)", training::kThreads);
}

void add_device_option(CLI::App& command, const char* name, const std::string& help, std::function<void(Device)> take) {
  const auto read = [name, take = std::move(take)](const std::string& word) {
    const std::optional<Device> device = gpu::device_of(word);
    if (!device)
      throw CLI::ValidationError(name, text(Shown{word, '"'}, " is not a device, expected cpu, cuda or cuda:N"));
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
  add_json(command, o.json);
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
    for (const std::string& word : option->reduced_results())
      all += option->get_positional()
                 ? " " + shell_word(word)
                 : text(" ", name, flag && word == "true" ? "" : text(flag ? "=" : " ", shell_word(word)));
  }
  return all;
}

reports::Environment run_environment(const CLI::App& command) {
  return {.command = given_command(command), .seconds = kSinceStart.seconds()};
}

CLI::Option* add_json(CLI::App& command, std::string& json) {
  return command.add_option("--json", json, "write the result as JSON (docs/results.md)");
}

void write_json(const std::string& path, std::vector<reports::Named> result, const std::string& text,
                const CLI::App& command) {
  if (!path.empty()) write_file(path, to_json(std::move(result), text, run_environment(command)));
}

void check_output_options(const OutputOptions& o, std::vector<NamedFile> inputs, std::vector<NamedFile> more) {
  more.push_back({"--report", o.report}), more.push_back({"--json", o.json});
  more.push_back({"--log", o.log, Written::in_place});
  check_outputs(more, inputs);
}

}  // namespace isonorm::tools
