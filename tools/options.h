// The options that `prove` and `train` share, and what the parser cannot check about them.
#pragma once

#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "streams/stream.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/models/own_option.h"

namespace isonorm::tools {

// Adds --model.
void add_model(CLI::App& command, const training::ModelRow*& model);

// Adds --width --depth --heads --patch --context --head-width --mlp --activation --positions --tied --mean-pool
// --no-bias --affine --eps.
void add_model_options(CLI::App& command, training::TrainingOptions& o);

// Adds an option to a verb whose statement is shown of this choice alone: another word is refused with that reason.
void add_shown_only(CLI::App& command, const char* option, const char* only);

// Adds --connection.
void add_connection(CLI::App& command, nn::Arrangement& connection);

// Adds --precision and --stream-precision; check_precision() throws UsageError where they do not go with --dtype or with
// each other.
void add_precision(CLI::App& command, nn::MixedPrecision& precision);
void check_precision(const training::TrainingOptions& o);

// Adds --dropout --stochastic-depth --layer-scale --decay-matrices-only --accumulate --ema; check_regularisation() throws
// UsageError where one is outside of its range, or the parts do not divide the batch.
void add_regularisation(CLI::App& command, training::TrainingOptions& o);
void check_regularisation(const training::TrainingOptions& o);

// Adds --model --data --width --depth --heads --patch --context --head-width --mlp --activation --positions --tied
// --mean-pool --no-bias --affine --eps --optimizer --lr --warmup --weight-decay
// --clip --steps --batch
// --dtype --seed --threads, bound to `o`, whose values are the defaults.
void add_shared_options(CLI::App& command, training::TrainingOptions& o);

// What a verb writes beside its result, and whether it says where it is. Empty names are no files.
struct OutputOptions {
  std::string report, json, log;
  bool quiet = false;
};

// Adds --report --json --log --quiet; `what` is written ("the proof"), `rest` is what --quiet leaves.
void add_output_options(CLI::App& command, OutputOptions& o, const std::string& what, const std::string& rest);

// Adds --threads, and throws UsageError where it was given and is not in [1, kMostThreads].
void add_threads(CLI::App& command, int& threads);
void check_threads(const CLI::App& command, int threads);

// Adds --device: "cpu", "cuda", "cuda:1". check_device() throws where there is no such device, and says why.
void add_device(CLI::App& command, Device& device);
void check_device(Device device, const char* option = "--device");
// Adds an option whose value is a device, "cpu", "cuda" or "cuda:1", which `take` gets.
void add_device_option(CLI::App& command, const char* name, const std::string& help, std::function<void(Device)> take);

// For CLI::Option::check: the name of one of these forms.
std::function<std::string(const std::string&)> one_of(std::span<const streams::Form> forms);

// Adds --seed, any whole number below 2^64.
void add_seed(CLI::App& command, uint64_t& seed, const std::string& help);

// Throws UsageError where an option is given that the model does not have.
void check_own_options(const training::TrainingOptions& o,
                       const std::function<bool(const training::OwnOption&)>& given);

// Throws UsageError naming the option that has no meaning, or none together with another.
void check_shared_options(const CLI::App& command, const training::TrainingOptions& o);

// The files that these options name, and `more`, held against `inputs`: see check_outputs.
void check_output_options(const OutputOptions& o, std::vector<NamedFile> inputs, std::vector<NamedFile> more = {});

// An option whose value is one of a few names.
template <class E>
void add_choice(CLI::App& command, const std::string& name, E& target,
                const std::vector<std::type_identity_t<E>>& values, const std::string& help) {
  std::string names;
  for (E v : values) names += text(names.empty() ? "" : "|", name_of(v));
  const auto read = [&target, values, name, names](const std::string& word) {
    for (E v : values)
      if (word == name_of(v)) {
        target = v;
        return;
      }
    throw CLI::ValidationError(name, text("\"", word, "\" is not one of ", names));
  };
  command.add_option_function<std::string>(name, read, help)->type_name(names)->default_str(name_of(target));
}

}  // namespace isonorm::tools
