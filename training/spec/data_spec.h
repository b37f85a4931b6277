// DataSpec: the meaning of a model's inputs and outputs, and the data it was trained on. A file holds it as text beside
// the weights.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/alphabet.h"
#include "io/safetensors.h"

namespace isonorm::training {

// Empty members are unknown, or belong to a model of another kind.
struct DataSpec {
  data::Alphabet alphabet = {};           // model of bytes: the byte of each id
  std::string tokenizer = {};             // model of tokens: its tokenizer.json, for tokenizers::Tokenizer::of_json()
  std::vector<std::string> classes = {};  // model of images: the class names in the order of the logits
  std::string preprocessor = {};  // model of images: how pictures become its inputs (training/spec/preprocessor.h)
  std::string data = {};          // "sha256:..." of the training data, Source::sha256()
  std::optional<double> test_share = {};  // share of these data that no step trained on, TrainingOptions::held_out()
  std::string earlier_data = {};          // `data` of the trainings that the weights come from, separated by spaces
  int64_t row_length = 0;                 // tokens in a row of the training, TrainingOptions::row_length

  // Sets `data` and `test_share` for a training that begins with this model or continues it. If its data are others, or if
  // it holds out more of the same data, the previous `data` joins earlier_data.
  void train_on(const std::string& data, double test_share);
  // The members as metadata of a file; an empty member has no entry.
  Metadata entries() const;
  // Reads such entries among `metadata`. Throws, naming the entry, if one is damaged, or if the metadata describe a model with
  // another number of classes than there are names.
  static DataSpec of(const Metadata& metadata);
  bool operator==(const DataSpec&) const = default;
};

// Names of the entries. They are metadata because other readers of safetensors skip metadata and refuse unknown tensors.
inline constexpr const char* kAlphabet = "characters";        // data::Alphabet::written()
inline constexpr const char* kTokenizer = "tokenizer";        // the text of tokenizer.json
inline constexpr const char* kClassNames = "classes";         // a JSON array of strings
inline constexpr const char* kPreprocessor = "preprocessor";  // the text of preprocessor_config.json
inline constexpr const char* kTrainingData = "data";
inline constexpr const char* kTestShare = "test_share";
inline constexpr const char* kEarlierData = "earlier_data";
inline constexpr double kOldTestShare = 0.1;  // of trainings whose files do not say it
inline constexpr const char* kRowLength = "row_length";
inline constexpr const char* kSpecEntries[] = {kAlphabet,     kTokenizer, kClassNames,  kPreprocessor,
                                               kTrainingData, kTestShare, kEarlierData, kRowLength};

// Largest tokenizer.json in bytes. The header of a file has space for it even if every byte is escaped.
inline constexpr int64_t kMostTokenizer = int64_t{1} << 25;

bool is_spec_entry(std::string_view name);
// The entries of a DataSpec among `metadata`, unread: for a program that copies them to another file.
Metadata spec_entries(const Metadata& metadata);
// The entries of a safetensors file, or of a checkpoint of `isonorm train`.
Metadata spec_entries(const SafetensorsFile& file);
DataSpec spec_of(const SafetensorsFile& file);  // throws as DataSpec::of()

}  // namespace isonorm::training
