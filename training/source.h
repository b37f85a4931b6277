// Source: the batches that a training sees, the examples that it never sees, and the shape that the data give the
// model. The batch of a step depends only on data, seed and step.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "autograd/ops/random.h"
#include "data/image_sets.h"
#include "data/loader.h"
#include "data/made_text.h"
#include "data/pairs.h"
#include "data/text.h"
#include "io/sha256.h"
#include "training/build_model.h"
#include "training/steps/examples.h"

namespace isonorm::training {

inline constexpr double kHeldOut = 0.1;                       // of a text: its end, for the test pass
inline constexpr int64_t kTestCharacters = int64_t{1} << 17;  // of it that the test pass takes

class Source {
 public:
  explicit Source(const TrainingOptions& o) : options_(o), context_(o.model.context()) {
    ModelShape shape = o.model.shape();
    if (shows_images()) {
      const auto set = std::make_shared<data::ImageSets>(data::load_images(o.data, shape.image));
      const data::PixelScale scale = data::measured_scale(set->train, o.dtype);
      take_from(std::make_shared<data::Loader<data::LabelledImages>>(
          set->train, data::LoaderOptions{.rows = o.batch,
                                          .seed = o.seed,
                                          .scale = scale,
                                          .augment = {.crop = o.random_crop, .flip = o.random_flip},
                                          .mixup = {.alpha = o.mixup, .classes = set->classes},
                                          .prefetch = ahead(),
                                          .device = o.device}));
      test_count_ = set->test.labels.numel();
      test_rows_ = [=](int64_t begin, int64_t rows) {
        return examples_of(data::slice_batch(set->test, begin, rows, scale));
      };
      const int64_t side = set->train.images.size(1);
      check(shape.image == side || shape.image == nn::VitOptions().image, data::image_folder(o.data),
            ": its images have a side of ", side, " pixels, the model's ", shape.image);
      shape.image = side;
      shape.channels = set->train.images.rank() == 4 ? set->train.images.size(3) : 1;
      shape.classes = set->classes;
    } else if (shows_pairs()) {
      const auto pairs = std::make_shared<data::Pairs>(
          o.data.empty()
              ? data::Pairs::made(o.task, kMadePairs, std::max<int64_t>(1, context_ - 1), letters(o), o.seed, kHeldOut)
              : data::Pairs(files()[0], files()[1], o.seed, kHeldOut));
      shape.vocab = pairs->vocab();
      check(pairs->longest() < context_, o.data.empty() ? "made pairs" : o.data, ": the longest side of a pair has ",
            pairs->longest(), " characters, a context of ", context_, " has place for ", context_ - 1, " and an end");
      take_rows(pairs, std::min(kTestCharacters / context_ + 1, pairs->held_out_count()));
    } else {
      const auto text =
          o.data.empty()
              ? std::make_shared<data::Text>(memory_bytes(own_text(o), "own text"), o.seed, 0, o.alphabet)  // no test
          : o.token_vocab > 0 ? std::make_shared<data::Text>(data::TokenFile{o.data, o.token_vocab}, o.seed, kHeldOut)
                              : std::make_shared<data::Text>(o.data, o.seed, kHeldOut, o.alphabet);
      options_.alphabet = text->alphabet();
      shape.vocab = text->vocab();
      const int64_t shown = text->length() - text->held_out_length();
      check(context_ >= 1 && context_ < shown, o.data, ": a context of ", context_, " needs a text of ", context_,
            " tokens and one more, this has ", shown, " to train on");
      take_rows(text, std::min(std::max<int64_t>(1, kTestCharacters / context_), text->held_out_windows(context_)));
    }
    options_.model.fit(shape);
  }

  // Those that it was made with, the model's sizes and the characters being those of the data.
  const TrainingOptions& options() const { return options_; }
  // How many batches have as many examples, or tokens of a text, as there are to train on.
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  void set_steps(int steps) { options_.steps = steps; }
  // Characters in an example (of a pair: of its target); 0: it is an image.
  int64_t context() const { return shows_images() ? 0 : context_; }
  // On options.device; on a GPU that of the next step is on its way meanwhile.
  Examples batch(int64_t step) {
    if (step != next_step_) seek_(step);
    next_step_ = -1;  // until there is one
    const Examples e = next_();
    next_step_ = step + 1;
    return e;
  }
  // Examples of the test pass: the test images, windows of the held-out text (0 where it is shorter than one), or pairs.
  int64_t test_count() const { return test_count_; }
  Examples test_rows(int64_t begin, int64_t rows) const { return test_rows_(begin, rows).on(options_.device); }

  // Of what is in those files, in their order. A text of pairs is told from one whose lines stand in the other file.
  std::string sha256() const {
    if (!shows_pairs()) return io::sha256_of_files(files());
    io::Sha256 all;
    for (const std::string& file : files()) all.update(io::sha256_of_files({file}));
    return all.hex();
  }
  // The files that the batches come from.
  std::vector<std::string> files() const {
    const std::string& data = options_.data;
    if (shows_images()) return data::image_files(data);
    if (data.empty()) return {};
    return shows_pairs() ? data::Pairs::files(data) : std::vector{data};
  }

 private:
  static constexpr int64_t kMadePairs = 4096;
  static int64_t letters(const TrainingOptions& o) { return o.letters > 0 ? o.letters : 13; }

  template <class Loader> void take_from(const std::shared_ptr<Loader>& loader) {
    steps_per_epoch_ = loader->steps_per_epoch();
    seek_ = [=](int64_t step) { loader->seek(step); };
    next_ = [=] { return examples_of(loader->next()); };
  }
  // Of a text or of pairs.
  template <class Set> void take_rows(const std::shared_ptr<Set>& set, int64_t test_count) {
    take_from(std::make_shared<data::RowLoader<Set>>(
        *set, data::RowLoaderOptions{
                  .rows = options_.batch, .length = context_, .prefetch = ahead(), .device = options_.device}));
    test_count_ = test_count;
    test_rows_ = [set, length = context_](int64_t begin, int64_t rows) {
      return examples_of(set->held_out_rows(begin, rows, length));
    };
  }

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

  bool shows_images() const { return options_.model.row().input == Input::images; }
  bool shows_pairs() const { return options_.model.row().input == Input::pairs; }

  TrainingOptions options_;
  int64_t context_;
  int64_t test_count_ = 0, steps_per_epoch_ = 1;
  std::function<Examples(int64_t begin, int64_t rows)> test_rows_;  // keeps the data, longer than what loads of them
  int64_t next_step_ = 0;                                           // whose batch next_() gives
  std::function<void(int64_t)> seek_;
  std::function<Examples()> next_;
};

}  // namespace isonorm::training
