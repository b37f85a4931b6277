// Source: the batches of a training, its held-out examples, and the model sizes that the data determine. The batch of a
// step depends only on data, seed and step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/steps/examples.h"
#include "training/training_options.h"

namespace isonorm::data {
class Text;
struct ImageSets;
}  // namespace isonorm::data

namespace isonorm::training {

inline constexpr int64_t kMostTestTokens = int64_t{1} << 17;  // limit for held-out tokens in a test pass

// training: batches, and at most kMostTestTokens tokens of test examples. evaluation: only test examples, all of them.
enum class Purpose { training, evaluation };

// images: a folder with a set of images, or the name of a published set (io/data/image_sets.h). pairs: a folder with
// source.txt and target.txt. text: anything else that is not a folder. Nothing if `data` is empty, if nothing is there,
// or if the folder holds none of these. Throws as data::image_folder().
std::optional<Input> kind_of_data(const std::string& data);
// The first of kModels that reads data of this kind; null if kind_of_data() is nothing. Throws as kind_of_data().
const ModelRow* model_for(const std::string& data);

// "a folder of images", "a text file": the data that such a model reads.
const char* data_noun(Input input);

// The files of data of this kind.
std::vector<std::string> files_of_data(Input input, const std::string& data);
// Checksum of these files in order. With pairs it also depends on the boundary between the two files.
std::string data_sha256(Input input, const std::string& data);

class Source {
 public:
  explicit Source(const TrainingOptions& o, Purpose purpose = Purpose::training);

  // The options from the constructor, with the model's sizes and the DataSpec taken from the data.
  const TrainingOptions& options() const { return options_; }
  // Number of training examples (for a text: tokens), and their number in a batch.
  int64_t train_count() const { return train_count_; }
  int64_t batch_count() const { return options_.batch * (shows_text() ? context_ : 1); }
  void set_length(int steps, int warmup) { options_.steps = steps, options_.warmup = warmup; }
  // Tokens in an example (for a pair: in its target); 0: examples are images.
  int64_t context() const { return shows_images() ? 0 : context_; }
  // The batch of a step, on options.device. On a GPU the next batch is copied meanwhile.
  Examples batch(int64_t step);
  // Number of examples of the test pass: test images, pairs, or windows of the held-out text (0 if it is shorter than a
  // window). The windows of options.test_data cover the whole text: the last one may be shorter, and so is the only one
  // if the text is shorter than the context. With Purpose::evaluation, a held-out part that is shorter than the context
  // has such a window, too.
  int64_t test_count() const { return test_count_; }
  // True if image labels were matched to the model's classes by name. False if the classes of the initial weights or of
  // the data have no names: then labels are positions.
  bool matches_classes() const { return matches_classes_; }
  // The same for the images of options.test_data and the classes of the training.
  bool tests_match_classes() const { return tests_match_classes_; }
  // Tokens of the held-out text, and the number that the test pass predicts; 0: not a text.
  int64_t held_out_tokens() const { return held_out_tokens_; }
  int64_t test_tokens() const { return test_tokens_; }
  // Size of the file that contains the held-out text, as a whole or at its end; 0: not a text.
  int64_t test_file_tokens() const { return test_file_tokens_; }
  int64_t test_file_bytes() const { return test_file_bytes_; }
  // How each file of a language model or folder of pairs was read: "train.bin: 4811 token ids, u16", "pairs: 400
  // pairs".
  const std::vector<std::string>& readings() const { return readings_; }
  Examples test_rows(int64_t begin, int64_t rows) const { return test_rows_(begin, rows).on(options_.device); }

  std::string sha256() const { return data_sha256(options_.model.row().input, options_.data); }
  std::string test_sha256() const { return data_sha256(options_.model.row().input, options_.test_data); }

 private:
  void take_images();
  void take_classes(data::ImageSets& set, const std::string& place);
  void take_pairs();
  void take_text();
  void take_held_out(const std::shared_ptr<data::Text>& text);
  template <class Loader> void take_from(const std::shared_ptr<Loader>& loader);
  // Only with a text or pairs.
  template <class Set> void take_rows(const std::shared_ptr<Set>& set);
  template <class Set> void take_test_rows(const std::shared_ptr<Set>& set, int64_t length, int64_t count);
  // Number of batches prepared ahead: 2 if they are copied to a device; 0 on the CPU, whose cores are busy.
  int ahead() const { return options_.device == kCpu ? 0 : 2; }

  bool shows_images() const { return options_.model.row().input == Input::images; }
  bool shows_text() const { return options_.model.row().input == Input::text; }

  TrainingOptions options_;
  Purpose purpose_;
  bool matches_classes_ = false, tests_match_classes_ = true;
  int64_t context_;
  int64_t train_count_ = 0, test_count_ = 0, held_out_tokens_ = 0, test_tokens_ = 0;
  int64_t test_file_tokens_ = 0, test_file_bytes_ = 0;
  std::vector<std::string> readings_;
  std::shared_ptr<const void> keeps_;  // the data that next_() reads: destroyed after it
  std::function<Examples(int64_t begin, int64_t rows)> test_rows_;
  int64_t next_step_ = 0;  // the step whose batch next_() returns
  std::function<void(int64_t)> seek_;
  std::function<Examples()> next_;
};

// "mean 0.286, standard deviation 0.353": the pixel scale of a spec that has one.
std::string scale_text(const DataSpec& spec, const ModelShape& shape);
// Lines about a model whose file lacks the bytes of its tokens, or the class names or pixel scale of its images; file:
// its DataSpec, source: the data that it reads.
std::vector<std::string> spec_notes(const DataSpec& file, const Source& source);

}  // namespace isonorm::training
