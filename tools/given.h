// The words that were given for options, and what is wrong with them: what the command line and the Python package share.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/parallel.h"
#include "equivalence/lockstep/result.h"
#include "training/options/option.h"
#include "training/training_options.h"

namespace isonorm::tools {

// By their names in files: "mlp_width".
using Given = std::map<std::string, std::string>;

// Sets the option to the value that `word` says. Returns the fault of the word, "\"-3\" is not a whole number from 0 to 100",
// or nothing.
std::string set_option(const training::Option& option, const std::string& word);
// Sets those of `options` that were given, and takes them from `given`. Throws UsageError naming what was expected.
void set_given(const std::vector<training::Option>& options, Given& given);
// The same of a training's; throws where the model has no option of that name, and where options contradict each other,
// too. What is in `given` of other structs must have been set before. If no model is given, it is the one that reads the given data.
void set_training_options(training::TrainingOptions& o, Given given);

// Throws UsageError if the data are of a kind that the model does not read.
void check_kind(const training::ModelRow& model, const std::string& data);
// The same, and if a model of characters has no data.
void check_data(const training::TrainingOptions& o);

// The numbers of threads and of control runs that a training and a proof can have.
inline constexpr training::Limits kThreads = {.least = 1, .most = kMostThreads}, kControls = training::from(1);
// Throws where there is no such device, and says why.
void check_device(Device device, const char* option = "--device");

// Throws UsageError where one of the names that were given for `option` is not in the list `known`, "sgd, adam", or is
// there twice.
void check_names(const char* option, const std::vector<std::string>& given, const std::string& known);

// Whether the option of a training is one of proofs: the forms of a proof are those of --forms, in one dtype throughout.
bool is_of_proofs(std::string_view name);
// Throws UsageError where the options of a proof contradict each other.
void check_proof(const equivalence::ProofOptions& o);

}  // namespace isonorm::tools
