#include "training/spec/data_spec.h"

#include <algorithm>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "io/checkpoint.h"
#include "io/json_text.h"

namespace isonorm::training {
namespace {

std::vector<std::string> read_classes(const std::string& words) {
  const json list = parsed(words);
  std::vector<std::string> classes;
  bool good = list.is_array();
  if (good)
    for (const json& name : list) {
      good = good && name.is_string();
      if (good) classes.push_back(name.get<std::string>());
    }
  check(good && !classes.empty(), "its entry '", kClassNames, "' is ", Shown{words}, ", expected a JSON list of names");
  return classes;
}

// The metadata of a file; for a checkpoint its values without their prefix.
Metadata values_of(const SafetensorsFile& file) {
  return is_checkpoint(file.metadata()) ? checkpoint_values(file) : file.metadata();
}

}  // namespace

void DataSpec::train_on(const std::string& data_now, double share_now) {
  const bool more = !data.empty() && (data != data_now || test_share.value_or(kOldTestShare) < share_now);
  if (more && earlier_data.find(data) == earlier_data.npos) earlier_data += text(earlier_data.empty() ? "" : " ", data);
  data = data_now, test_share = share_now;
}

Metadata DataSpec::entries() const {
  Metadata all;
  if (!alphabet.empty()) all.emplace(kAlphabet, alphabet.written());
  if (!tokenizer.empty()) all.emplace(kTokenizer, tokenizer);
  if (!classes.empty()) all.emplace(kClassNames, dump(classes));
  if (!preprocessor.empty()) all.emplace(kPreprocessor, preprocessor);
  if (!data.empty()) all.emplace(kTrainingData, data);
  if (test_share) all.emplace(kTestShare, shortest(*test_share));
  if (!earlier_data.empty()) all.emplace(kEarlierData, earlier_data);
  if (row_length > 0) all.emplace(kRowLength, text(row_length));
  return all;
}

DataSpec DataSpec::of(const Metadata& metadata) {
  DataSpec spec;
  for (const auto& [name, value] : spec_entries(metadata))
    if (name == kAlphabet)
      spec.alphabet = data::Alphabet::read(value);
    else if (name == kTokenizer)
      spec.tokenizer = value;
    else if (name == kClassNames)
      spec.classes = read_classes(value);
    else if (name == kPreprocessor)
      spec.preprocessor = value;
    else if (name == kTrainingData)
      spec.data = value;
    else if (name == kEarlierData)
      spec.earlier_data = value;
    else if (name == kRowLength)
      check(read_number(value, spec.row_length) && spec.row_length >= 0, "its entry '", kRowLength, "' is ",
            Shown{value}, ", expected a number of tokens");
    else
      check(read_number(value, spec.test_share.emplace()) && *spec.test_share >= 0 && *spec.test_share < 1,
            "its entry '", kTestShare, "' is ", Shown{value}, ", expected a number from 0 to below 1");
  if (const auto count = metadata.find("model.classes"); count != metadata.end() && !spec.classes.empty())
    check(count->second == text(spec.classes.size()), "its entry '", kClassNames, "' has ", spec.classes.size(),
          " names, the model ", Shown{count->second}, " classes");
  return spec;
}

bool is_spec_entry(std::string_view name) { return std::ranges::count(kSpecEntries, name) > 0; }

Metadata spec_entries(const Metadata& metadata) {
  Metadata entries;
  for (const auto& [name, value] : metadata)
    if (is_spec_entry(name)) entries.emplace(name, value);
  return entries;
}

Metadata spec_entries(const SafetensorsFile& file) { return spec_entries(values_of(file)); }

DataSpec spec_of(const SafetensorsFile& file) { return DataSpec::of(values_of(file)); }

}  // namespace isonorm::training
