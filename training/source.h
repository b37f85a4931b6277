// Source: the batches that a training sees, the examples that it never sees, and the shape that the data give the
// model. The batch of a step depends only on data, seed and step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "training/steps/examples.h"
#include "training/training_options.h"

namespace isonorm::data {
class Text;
struct ImageSets;
}  // namespace isonorm::data

namespace isonorm::training {

inline constexpr int64_t kMostTestTokens = int64_t{1} << 17;  // tokens of the held-out text that a test pass takes

// training: batches, and test examples of at most kMostTestTokens tokens. evaluation: test examples alone, without a limit.
enum class Uses { training, evaluation };

// The files that data of this kind are in.
std::vector<std::string> files_of_data(Input input, const std::string& data);
// Checksum of these files, in their order. The two files of pairs are told from two with the same bytes cut elsewhere.
std::string data_sha256(Input input, const std::string& data);

class Source {
 public:
  explicit Source(const TrainingOptions& o, Uses uses = Uses::training);

  // Those that it was made with, with the model's sizes and the DataSpec of the data.
  const TrainingOptions& options() const { return options_; }
  // The images, pairs or tokens of a text to train on, and how many of them a batch has.
  int64_t train_count() const { return train_count_; }
  int64_t batch_count() const { return options_.batch * (shows_text() ? context_ : 1); }
  void set_length(int steps, int warmup) { options_.steps = steps, options_.warmup = warmup; }
  // Tokens in an example (of a pair: in its target); 0: an example is an image.
  int64_t context() const { return shows_images() ? 0 : context_; }
  // On options.device; on a GPU that of the next step is on its way meanwhile.
  Examples batch(int64_t step);
  // Examples of the test pass: the test images, windows of the held-out text (0 where it is shorter than one), or pairs. The
  // windows of options.test_data cover the whole text: the last one may be shorter, and so is the only one if the text is
  // shorter than the context. With Uses::evaluation a held-out part that is shorter than the context has such a window, too.
  int64_t test_count() const { return test_count_; }
  // True if the labels of images are the model's classes by name. False if the classes that the training begins with, or
  // those of the data, have no names: then the labels are places.
  bool matches_classes() const { return matches_classes_; }
  // The same of the images of options.test_data and the classes of the training.
  bool tests_match_classes() const { return tests_match_classes_; }
  // Tokens of the held-out text, and how many of them the test pass predicts; 0: it is no text.
  int64_t held_out_tokens() const { return held_out_tokens_; }
  int64_t test_tokens() const { return test_tokens_; }
  // The size of the file that the held-out text is from, which is the whole of it or a part; 0: it is no text.
  int64_t test_file_tokens() const { return test_file_tokens_; }
  int64_t test_file_bytes() const { return test_file_bytes_; }
  // How each file of a language model or folder of pairs was read: "train.bin: 4811 token ids, u16", "pairs: 400 pairs".
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
  // Of a text or of pairs.
  template <class Set> void take_rows(const std::shared_ptr<Set>& set);
  template <class Set> void take_test_rows(const std::shared_ptr<Set>& set, int64_t length, int64_t count);
  // Batches beyond the one in use: two, where they travel; none on the CPU, whose cores compute.
  int ahead() const { return options_.device == kCpu ? 0 : 2; }

  bool shows_images() const { return options_.model.row().input == Input::images; }
  bool shows_text() const { return options_.model.row().input == Input::text; }
  bool shows_pairs() const { return options_.model.row().input == Input::pairs; }

  TrainingOptions options_;
  Uses uses_;
  bool matches_classes_ = false, tests_match_classes_ = true;
  int64_t context_;
  int64_t train_count_ = 0, test_count_ = 0, held_out_tokens_ = 0, test_tokens_ = 0;
  int64_t test_file_tokens_ = 0, test_file_bytes_ = 0;
  std::vector<std::string> readings_;
  std::shared_ptr<const void> keeps_;  // the data that next_() reads: destroyed after it
  std::function<Examples(int64_t begin, int64_t rows)> test_rows_;
  int64_t next_step_ = 0;  // whose batch next_() gives
  std::function<void(int64_t)> seek_;
  std::function<Examples()> next_;
};

// "mean 0.286, standard deviation 0.353": the pixel scale of a spec that has one.
std::string scale_text(const DataSpec& spec, const ModelShape& shape);
// Lines about a model whose file lacks the bytes of its tokens, or the class names or pixel scale of its images; file: its DataSpec, source: the data that it reads.
std::vector<std::string> spec_notes(const DataSpec& file, const Source& source);

}  // namespace isonorm::training
