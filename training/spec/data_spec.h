// DataSpec: the meaning of a model's inputs and outputs, and the data that it was trained on. Stored as text in the
// file of the weights.
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
  data::Alphabet alphabet = {};           // models of bytes: the byte of each id
  std::string tokenizer = {};             // models of tokens: tokenizer.json (tokenizers::Tokenizer::of_json())
  std::vector<std::string> classes = {};  // models of images: class names in the order of the logits
  std::string preprocessor = {};          // models of images: preprocessing of pictures (training/spec/preprocessor.h)
  std::string data = {};                  // "sha256:..." of the training data, Source::sha256()
  std::optional<double> test_share = {};  // held-out share of the data, TrainingOptions::held_out()
  std::string earlier_data = {};          // `data` of earlier trainings of these weights, separated by spaces
  int64_t row_length = 0;                 // tokens in a row of a batch, TrainingOptions::row_length

  // Sets `data` and `test_share` for a training that starts from these weights or resumes. If the data differ, or more
  // of the same data is held out, the previous `data` is appended to earlier_data.
  void train_on(const std::string& data, double test_share);
  // The members as metadata of a file; an empty member has no entry.
  Metadata entries() const;
  // Reads these entries from metadata. Throws, naming the entry, if one is damaged, or if the metadata describe a model
  // with another number of classes than there are names.
  static DataSpec of(const Metadata& metadata);
  bool operator==(const DataSpec&) const = default;
};

// Names of the entries. They are metadata because other readers of safetensors skip metadata and refuse unknown
// tensors.
inline constexpr const char* kAlphabet = "characters";        // data::Alphabet::written()
inline constexpr const char* kTokenizer = "tokenizer";        // the text of tokenizer.json
inline constexpr const char* kClassNames = "classes";         // a JSON array of strings
inline constexpr const char* kPreprocessor = "preprocessor";  // the text of preprocessor_config.json
inline constexpr const char* kTrainingData = "data";
inline constexpr const char* kTestShare = "test_share";
inline constexpr const char* kEarlierData = "earlier_data";
inline constexpr double kOldTestShare = 0.1;  // for files without the entry
inline constexpr const char* kRowLength = "row_length";
inline constexpr const char* kSpecEntries[] = {kAlphabet,     kTokenizer, kClassNames,  kPreprocessor,
                                               kTrainingData, kTestShare, kEarlierData, kRowLength};

// Largest tokenizer.json in bytes. The header of a file has space for it even if every byte is escaped.
inline constexpr int64_t kMostTokenizer = int64_t{1} << 25;

bool is_spec_entry(std::string_view name);
// The entries of a DataSpec in `metadata`, uninterpreted, for a program that copies them to another file.
Metadata spec_entries(const Metadata& metadata);
// The entries of a safetensors file, or of a checkpoint of `isonorm train`.
Metadata spec_entries(const SafetensorsFile& file);
DataSpec spec_of(const SafetensorsFile& file);  // throws as DataSpec::of()

}  // namespace isonorm::training
