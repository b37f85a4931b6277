// Options of a training given as words, and errors about them; for the command line and the Python package.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/parallel.h"
#include "training/options/option.h"
#include "training/training_options.h"

namespace isonorm::training {

// Names are the names in files: "mlp_width".
using Given = std::map<std::string, std::string>;

// Sets the option to the value that `word` says. Returns the fault of the word, "\"-3\" is not a whole number from 0 to
// 100", or nothing.
std::string set_option(const Option& option, const std::string& word);
// Sets the `options` that were given, and removes them from `given`. Throws UsageError with the expected form.
void set_given(const std::vector<Option>& options, Given& given);
// The same for the options of a training and its model. If no model is given, the given data decide the model. Also
// throws if the model has no option of a given name, or if options contradict each other. Call set_given() first for
// the options of other structs: it removes them from `given`.
void set_training_options(TrainingOptions& o, Given given);

// Throws UsageError if the data are of a kind that the model does not read.
void check_kind(const ModelRow& model, const std::string& data, const char* option = "--data");
// The same for data and test data, and if a model of texts has no data.
void check_data(const TrainingOptions& o);

// The numbers of threads that a training can have.
inline constexpr Limits kThreads = {.least = 1, .most = kMostThreads};
// Throws UsageError if the number is not within the limits.
void check_number(const char* option, int number, Limits limits);
// Throws if there is no such device, and says why.
void check_device(Device device, const char* option = "--device");

// Throws UsageError if a name that was given for `option` is not in the list `known`, "sgd, adam", or is given twice.
void check_names(const char* option, const std::vector<std::string>& given, const std::string& known);

// Throws UsageError if the warm-up is longer than the training.
void check_warmup(const TrainingOptions& o);

}  // namespace isonorm::training
