// Source: the batches that a training sees, the examples that it never sees, and the shape that the data give the
// model. The batch of a step depends only on data, seed and step.
#pragma once

#include <algorithm>
#include <optional>

#include "autograd/ops/random.h"
#include "data/cifar10.h"
#include "data/loader.h"
#include "data/made_text.h"
#include "data/pairs.h"
#include "data/text.h"
#include "io/sha256.h"
#include "training/build_model.h"
#include "training/examples.h"

namespace isonorm::training {

inline constexpr double kHeldOut = 0.1;                       // of a text: its end, for the test pass
inline constexpr int64_t kTestCharacters = int64_t{1} << 17;  // of it that the test pass takes

class Source {
 public:
  explicit Source(const TrainingOptions& o) : options_(o), context_(o.model.context()) {
    ModelShape shape = o.model.shape();
    if (o.model.row().input == Input::images) {
      if (data::Cifar10::is_in(o.data)) {
        data::Cifar10 set = data::Cifar10::load(o.data);
        images_ = {std::move(set.train), std::move(set.test)};
      } else {
        data::FashionMnist set = data::FashionMnist::load(o.data);
        images_ = {std::move(set.train), std::move(set.test)};
      }
      scale_ = data::measured_scale(images_->train, o.dtype);
      loader_.emplace(images_->train,
                      data::LoaderOptions{
                          .rows = o.batch, .seed = o.seed, .scale = scale_, .prefetch = ahead(), .device = o.device});
      shape.image = images_->train.images.size(1);
      shape.channels = images_->train.images.rank() == 4 ? images_->train.images.size(3) : 1;
      shape.classes = 10;  // of either set
    } else if (o.model.row().input == Input::pairs) {
      if (o.data.empty())
        pairs_.emplace(
            data::Pairs::made(o.task, kMadePairs, std::max<int64_t>(1, context_ - 1), letters(o), o.seed, kHeldOut));
      else
        pairs_.emplace(files()[0], files()[1], o.seed, kHeldOut);
      shape.vocab = pairs_->vocab();
      check(pairs_->longest() < context_, o.data.empty() ? "made pairs" : o.data, ": the longest side of a pair has ",
            pairs_->longest(), " characters, a context of ", context_, " has place for ", context_ - 1, " and an end");
      pair_loader_.emplace(*pairs_, data::RowLoaderOptions{
                                        .rows = o.batch, .length = context_, .prefetch = ahead(), .device = o.device});
    } else {
      if (o.data.empty())
        text_.emplace(memory_bytes(own_text(o), "own text"), o.seed);  // nothing to test
      else if (o.token_vocab > 0)
        text_.emplace(data::TokenFile{o.data, o.token_vocab}, o.seed, kHeldOut);
      else
        text_.emplace(o.data, o.seed, kHeldOut);
      shape.vocab = text_->vocab();
      const int64_t shown = text_->length() - text_->held_out_length();
      check(context_ >= 1 && context_ < shown, o.data, ": a context of ", context_, " needs a text of ", context_,
            " tokens and one more, this has ", shown, " to train on");
      text_loader_.emplace(
          *text_, data::RowLoaderOptions{.rows = o.batch, .length = context_, .prefetch = ahead(), .device = o.device});
    }
    options_.model.fit(shape);
  }

  // Those that it was made with, the model's sizes being those of the data.
  const TrainingOptions& options() const { return options_; }
  // Characters in an example (of a pair: of its target); 0: it is an image.
  int64_t context() const { return images_ ? 0 : context_; }
  // On options.device; on a GPU that of the next step is on its way meanwhile.
  Examples batch(int64_t step) {
    if (step != next_) {
      if (loader_) loader_->seek(step);
      if (text_) text_loader_->seek(step);
      if (pairs_) pair_loader_->seek(step);
    }
    next_ = -1;  // until there is one
    Examples e;
    if (text_) {
      const data::TextBatch b = text_loader_->next();
      e = {b.x, b.y};
    } else if (pairs_) {
      const data::PairBatch b = pair_loader_->next();
      e = {b.x, b.y};
    } else {
      const data::Batch b = loader_->next();
      e = {b.images, b.labels};
    }
    next_ = step + 1;
    return e;
  }
  // Examples of the test pass: the test images, windows of the held-out text (0 where it is shorter than one), or pairs.
  int64_t test_count() const {
    if (images_) return images_->test.labels.numel();
    if (pairs_) return std::min(kTestCharacters / context_ + 1, pairs_->held_out_count());
    const int64_t most = std::max<int64_t>(1, kTestCharacters / context_);
    return std::min(most, text_->held_out_windows(context_));
  }
  Examples test_rows(int64_t begin, int64_t rows) const {
    if (text_) {
      const data::TextBatch b = text_->held_out_rows(begin, rows, context_);
      return Examples{b.x, b.y}.on(options_.device);
    }
    if (pairs_) {
      const data::PairBatch b = pairs_->held_out_rows(begin, rows, context_);
      return Examples{b.x, b.y}.on(options_.device);
    }
    const data::Batch b = data::slice_batch(images_->test, begin, rows, scale_);
    return Examples{b.images, b.labels}.on(options_.device);
  }

  // Of what is in those files, in their order. A text of pairs is told from one whose lines stand in the other file.
  std::string sha256() const {
    if (!pairs_) return io::sha256_of_files(files());
    io::Sha256 all;
    for (const std::string& file : files()) all.update(io::sha256_of_files({file}));
    return all.hex();
  }
  // The files that the batches come from.
  std::vector<std::string> files() const {
    if (images_ && data::Cifar10::is_in(options_.data)) return data::Cifar10::files(options_.data);
    if (images_) return data::FashionMnist::files(options_.data);
    if (options_.model.row().input == Input::pairs && !options_.data.empty()) return data::Pairs::files(options_.data);
    return options_.data.empty() ? std::vector<std::string>() : std::vector{options_.data};
  }

 private:
  static constexpr int64_t kMadePairs = 4096;
  static int64_t letters(const TrainingOptions& o) { return o.letters > 0 ? o.letters : 13; }

  // What stands in for a file: random letters, so many that each is there, or sentences.
  static std::vector<uint8_t> own_text(const TrainingOptions& o) {
    if (o.letters == 0) {
      const std::string sentences = data::made_text(o.seed, 1 << 15);
      return {sentences.begin(), sentences.end()};
    }
    Generator generator{1, 0};
    std::vector<uint8_t> bytes;
    for (int64_t id : randint(0, o.letters, {64 * o.letters}, kCpu, generator).to_vector<int64_t>())
      bytes.push_back(static_cast<uint8_t>('a' + id));
    return bytes;
  }

  // Batches beyond the one in use: two, where they travel; none on the CPU, whose cores compute.
  int ahead() const { return options_.device == kCpu ? 0 : 2; }

  TrainingOptions options_;
  int64_t context_;
  struct Images {
    data::LabelledImages train, test;
  };
  std::optional<Images> images_;
  data::PixelScale scale_;
  std::optional<data::Loader> loader_;
  std::optional<data::Text> text_;
  std::optional<data::TextLoader> text_loader_;
  std::optional<data::Pairs> pairs_;
  std::optional<data::PairLoader> pair_loader_;
  int64_t next_ = 0;  // the step whose batch the loader gives next
};

}  // namespace isonorm::training
