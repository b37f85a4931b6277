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

namespace isonorm::training {

inline constexpr double kHeldOut = 0.1;                       // of a text: its end, for the test pass
inline constexpr int64_t kTestCharacters = int64_t{1} << 17;  // of it that the test pass takes

class Source {
 public:
  explicit Source(const TrainingOptions& o);

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
  // Examples of the test pass: the test images, windows of the held-out text (0 where it is shorter than one), or pairs.
  int64_t test_count() const { return test_count_; }
  Examples test_rows(int64_t begin, int64_t rows) const { return test_rows_(begin, rows).on(options_.device); }

  // Of what is in those files, in their order. A text of pairs is told from one whose lines stand in the other file.
  std::string sha256() const;
  // The files that the batches come from.
  std::vector<std::string> files() const;

 private:
  void take_images();
  void take_pairs();
  void take_text();
  template <class Loader> void take_from(const std::shared_ptr<Loader>& loader);
  // Of a text or of pairs.
  template <class Set> void take_rows(const std::shared_ptr<Set>& set, int64_t test_count);
  // Batches beyond the one in use: two, where they travel; none on the CPU, whose cores compute.
  int ahead() const { return options_.device == kCpu ? 0 : 2; }

  bool shows_images() const { return options_.model.row().input == Input::images; }
  bool shows_text() const { return options_.model.row().input == Input::text; }
  bool shows_pairs() const { return options_.model.row().input == Input::pairs; }

  TrainingOptions options_;
  int64_t context_;
  int64_t train_count_ = 0, test_count_ = 0;
  std::function<Examples(int64_t begin, int64_t rows)> test_rows_;  // keeps the data, longer than what loads of them
  int64_t next_step_ = 0;                                           // whose batch next_() gives
  std::function<void(int64_t)> seek_;
  std::function<Examples()> next_;
};

}  // namespace isonorm::training
