// Internal: functions that the services for checkpoint files share: model descriptions, inputs for a described model,
// and the report text about a comparison.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "equivalence/verify/file_conversion.h"
#include "equivalence/verify/verify.h"
#include "exchange/hub/folder.h"
#include "io/safetensors.h"
#include "streams/plan.h"
#include "streams/stream.h"

namespace isonorm::services {

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

// "in f64, logits of data differ by 5.6e-16 = 2.5 eps of f64; one ulp of every weight does 1.1e-15, allowed 1.9e-14:
// equivalent", with `when` = "in f64, " and an output that compare_models() or compare_streams() compared.
std::string deviation_text(const std::string& when, const equivalence::Deviation& output);

// "entries differ by 43 % of what rounding explains: equivalent", with `where` = "entries"; if they differ, the entry
// that differs most.
std::string entries_text(const std::string& where, const equivalence::EntryComparison& entries);

// Prints, line by line, a table of the changes to each tensor.
void print_changes(const equivalence::FileConversion& conversion, const std::function<void(const std::string&)>& print);

}  // namespace isonorm::services
