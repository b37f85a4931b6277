// Sets the options of a training run from text and checks them; for the command line and the Python package.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/parallel.h"
#include "training/options/option.h"
#include "training/training_options.h"

namespace isonorm::training {

// Text values by option name. Names are spelled as in files: "mlp_width".
using Given = std::map<std::string, std::string>;

// Parses `word` and sets the option. Returns an error message, "\"-3\" is not a whole number from 0 to 100", or an
// empty string.
std::string set_option(const Option& option, const std::string& word);
// Sets every option of `options` that is in `given`, and removes it from `given`. Throws UsageError with the expected
// form.
void set_given(const std::vector<Option>& options, Given& given);
// The same for the options of a training and its model. If `given` has no "model", the data decide the model. Also
// throws if the model has no option of a name in `given`, or if options contradict each other. Call set_given() first
// for the options of other structs: it removes them from `given`.
void set_training_options(TrainingOptions& o, Given given);

// Throws UsageError if the data are of a kind that the model does not read.
void check_kind(const ModelRow& model, const std::string& data, const char* option = "--data");
// Throws UsageError as check_kind() for data and test data, and if a language model has no data.
void check_data(const TrainingOptions& o);

// Limits of the number of threads of a training run.
inline constexpr Limits kThreads = {.least = 1, .most = kMostThreads};
// Throws UsageError if the number is not within the limits.
void check_number(const char* option, int number, Limits limits);
// Throws if the device does not exist, with the reason.
void check_device(Device device, const char* option = "--device");

// Throws UsageError if a name in `given`, the value of `option`, is not in the list `known`, "sgd, adam", or occurs
// twice.
void check_names(const char* option, const std::vector<std::string>& given, const std::string& known);

// Throws UsageError if the warm-up is longer than the training.
void check_warmup(const TrainingOptions& o);

}  // namespace isonorm::training
