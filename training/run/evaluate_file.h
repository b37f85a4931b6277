// Evaluates a trained model file on data: `isonorm evaluate` is this function.
#pragma once

#include <optional>
#include <string>

#include "core/device.h"
#include "training/records/training_text.h"

namespace isonorm::training {

// The data are read as for a training (TrainingOptions). If the data set has test images of its own, these are used.
// Otherwise the whole of `data` is used or, if the model was trained on it, the share at its end that the training held
// out.
struct FileEvaluation {
  std::string model;                      // a checkpoint of `isonorm train`, or a file that describes its model
  std::string data = {}, test_data = {};  // test_data: the whole of it is used; excludes `data`
  std::optional<double> test_share = {};  // share at the end of `data`; none: see above
  std::string tokenizer = {};             // for a text; empty: the one in the file
  int64_t token_vocab = 0;                // the data are token ids below it; 0: the model's number of tokens
  std::optional<data::IdWidth> ids = {};  // the data are ids of this width; none: the bytes of the file decide
  bool is_text = false;                   // the data are a text, whatever bytes they have
  int threads = 0;                        // 0: as the process has
  Device device = kCpu;
};

struct EvaluatedFile : EvaluationOn {
  std::string model = {};                          // its file
  std::optional<int64_t> tokens = {}, bytes = {};  // of the tested file; none: not a text
  std::string data_text = {};                      // lines that say which data were used; may be empty
};

//   std::printf("%.4f\n", training::evaluate_file({.model = "gpt.ckpt", .data = "README.md"}).loss);
//
// Throws UsageError if options contradict each other or do not fit the model; Error if a file cannot be read, if model
// and data have other sizes, or if there is nothing to test on; Diverged if a weight or the loss is not finite. Warns
// as warn_of_averages(), and about class names, pixel scales and alphabets that the model file lacks (spec_notes).
EvaluatedFile evaluate_file(const FileEvaluation& options);

}  // namespace isonorm::training
