// Functions that the services for checkpoint files share: descriptions, inputs for a described model, the sentence
// about an agreement.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "equivalence/verify/file_conversion.h"
#include "equivalence/verify/verify.h"
#include "exchange/hub/folder.h"
#include "io/safetensors.h"
#include "io/tokenizers/tokenizer.h"
#include "streams/plan.h"
#include "streams/stream.h"
#include "training/spec/data_spec.h"

namespace isonorm::services {

// Throws Diverged, naming the file and the tensor, if a weight is NaN or infinite.
void check_finite(const std::string& path, const TensorMap& weights);

// Warns if the file is a checkpoint of a training with averaged weights (--ema). Its test passes used the averages;
// whoever reads the checkpoint as a model gets the weights of its step. Call it when nothing can fail any more: a
// failure is one line.
void warn_of_averages(const SafetensorsFile& file, const std::string& path);

// training::load_model() for a command that computes with the model. Also throws as check_finite().
std::unique_ptr<nn::Module> load_finite_model(const std::string& path);

// The description of a model as JSON, and the file or folder that it comes from.
struct Description {
  std::string json, path;
};
// The description in the JSON file at `path` (at most 1 MB), or of the model in the folder at `path`.
Description description_at(const std::string& path);
Description description_of(const hub::Folder& folder);

// The streams of a file whose parameters are in `form`. converted, folds: as for streams::plan_in(), which refuses
// models that no conversion keeps.
std::vector<streams::FileStream> described_streams(const Description& description, const training::OpenModelFile& file,
                                                   streams::Form form, bool converted, bool folds = true);

// Examples of the data set at `path` as inputs of the model that `description` names: images of the folder, or rows of
// a text file. Throws if the data do not fit the model.
Tensor data_inputs(const Metadata& description, const std::string& path);

// Throws if the tokenizer at `given` differs from the tokenizer in `held`, the DataSpec of the file `model`. Does
// nothing if one of them is missing.
void check_tokenizer(const std::string& given, const training::DataSpec& held, const std::string& model);

// The tokenizer with this tokenizer.json, which the file at `path` contains. Throws as Tokenizer::of_json(), naming the
// file.
tokenizers::Tokenizer held_tokenizer(const std::string& path, const std::string& json);

// "logits of data differ by 5.6e-16 = 2.5 eps of f64; one ulp of every weight does 1.1e-15, allowed 1.9e-14: equivalent",
// with `where` = "logits of data".
std::string agreement_text(const std::string& where, const equivalence::Agreement& agreement);

// "entries differ by 43 % of what rounding explains: equivalent", with `where` = "entries"; if they differ, the entry that
// differs most.
std::string entries_text(const std::string& where, const equivalence::EntryComparison& entries);

// Prints, line by line, a table of the changes to each tensor.
void print_changes(const equivalence::FileConversion& conversion, const std::function<void(const std::string&)>& print);

}  // namespace isonorm::services
