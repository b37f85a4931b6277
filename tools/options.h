// The options of a training on the command line. training/fields.h and the models' rows list them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streams/stream.h"
#include "training/run/given.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/training_options.h"

namespace isonorm::tools {

using Wanted = std::function<bool(std::string_view name)>;

// Adds the options that have a help and are `wanted`, in their groups. Help shows their values as defaults.
void add_options(CLI::App& command, const std::vector<training::Option>& options, training::Given& given,
                 const Wanted& wanted = {});
// Adds --model and all options of trainings and models.
void add_training_options(CLI::App& command, const training::TrainingOptions& defaults, training::Given& given,
                          const Wanted& wanted = {});

// Adds an option for a number with limits: "top_k" is --top-k. Help shows its value as the default, unless there is
// none or `help` names the default itself. Parsing throws CLI::ValidationError, which names the word and the limits.
CLI::Option* add_value(CLI::App& command, const training::Option& option);
template <class T>
CLI::Option* add_number(CLI::App& command, const char* name, T& value, std::string_view help,
                        training::Limits limits = {}) {
  training::Fields f;
  f(name, value, help, limits);
  return add_value(command, f.options[0]);
}
// Adds --max-shard-size: "5GB", "5.5GiB" or bytes, at least 1. Calls take(bytes).
void add_shard_size(CLI::App& command, const std::string& help, std::function<void(int64_t)> take);

// Output files of a command besides its result, and whether the command prints less. An empty name means no file.
struct OutputOptions {
  std::string report, json, log;
  bool quiet = false;
};

// Adds --report, --json and --log, which write `what` ("the proof"), and --quiet, which prints only `rest`.
void add_output_options(CLI::App& command, OutputOptions& o, const std::string& what, const std::string& rest);

// Adds --threads.
void add_threads(CLI::App& command, int& threads);

// Adds --device: "cpu", "cuda", "cuda:1".
void add_device(CLI::App& command, Device& device);
// Adds an option whose value is a device, "cpu", "cuda" or "cuda:1". Calls take(device).
void add_device_option(CLI::App& command, const char* name, const std::string& help, std::function<void(Device)> take);

// Accepts the name of a form in `forms`.
CLI::Validator one_of(const streams::Forms& forms);

// Adds --seed.
void add_seed(CLI::App& command, uint64_t& seed, const std::string& help);

// "isonorm audit --model gpt": the options given on the command line, without options for output files and quietness.
std::string given_command(const CLI::App& command);
// That command, and the seconds since the program began.
reports::Environment run_environment(const CLI::App& command);

// Adds --json.
CLI::Option* add_json(CLI::App& command, std::string& json);
// Writes a result and the text that was printed to the file of --json, if one is named. Throws Error (io).
void write_json(const std::string& path, std::vector<reports::Named> result, const std::string& text,
                const CLI::App& command);

// Calls check_outputs() for the files of these options and `more`, with `inputs`.
void check_output_options(const OutputOptions& o, std::vector<NamedFile> inputs, std::vector<NamedFile> more = {});

}  // namespace isonorm::tools
