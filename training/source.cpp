#include "training/source.h"

#include <algorithm>

#include "autograd/ops/random.h"
#include "data/image_sets.h"
#include "data/loader.h"
#include "data/made_text.h"
#include "data/pairs.h"
#include "data/row_loader.h"
#include "data/text.h"
#include "io/sha256.h"
#include "nn/vit.h"

namespace isonorm::training {
namespace {

constexpr int64_t kMadePairs = 4096;

int64_t letters(const TrainingOptions& o) { return o.letters > 0 ? o.letters : 13; }

// The text that replaces a file: random letters, enough that each occurs, or sentences.
std::vector<uint8_t> own_text(const TrainingOptions& o) {
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

}  // namespace

template <class Loader> void Source::take_from(const std::shared_ptr<Loader>& loader) {
  seek_ = [=](int64_t step) { loader->seek(step); };
  next_ = [=] { return examples_of(loader->next()); };
}

template <class Set> void Source::take_rows(const std::shared_ptr<Set>& set, int64_t test_count) {
  take_from(std::make_shared<data::RowLoader<Set>>(
      *set, data::RowLoaderOptions{
                .rows = options_.batch, .length = context_, .prefetch = ahead(), .device = options_.device}));
  test_count_ = test_count;
  test_rows_ = [set, length = context_](int64_t begin, int64_t rows) {
    return examples_of(set->held_out_rows(begin, rows, length));
  };
}

void Source::take_images() {
  const TrainingOptions& o = options_;
  ModelShape shape = o.model.shape();
  const auto set = std::make_shared<data::ImageSets>(data::load_images(o.data, shape.image));
  train_count_ = set->train.labels.numel();
  check(o.batch <= train_count_, data::image_folder(o.data), ": there are ", train_count_,
        " images to train on, --batch ", o.batch, " is more");
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
  options_.model.fit(shape);
}

void Source::take_pairs() {
  const TrainingOptions& o = options_;
  const auto pairs = std::make_shared<data::Pairs>(
      o.data.empty()
          ? data::Pairs::made(o.task, kMadePairs, std::max<int64_t>(1, context_ - 1), letters(o), o.seed, kHeldOut)
          : data::Pairs(files()[0], files()[1], o.seed, kHeldOut));
  check(pairs->longest() < context_, o.data.empty() ? "made pairs" : o.data, ": the longest side of a pair has ",
        pairs->longest(), " bytes, a context of ", context_, " has place for ", context_ - 1, " and an end");
  train_count_ = pairs->count() - pairs->held_out_count();
  take_rows(pairs, std::min(kTestCharacters / context_ + 1, pairs->held_out_count()));
  ModelShape shape = o.model.shape();
  shape.vocab = pairs->vocab();
  options_.model.fit(shape);
}

void Source::take_text() {
  const TrainingOptions& o = options_;
  const auto text =
      o.data.empty()
          ? std::make_shared<data::Text>(memory_bytes(own_text(o), "own text"), o.seed, 0, o.spec.alphabet)  // no test
      : o.token_vocab > 0 ? std::make_shared<data::Text>(data::TokenFile{o.data, o.token_vocab}, o.seed, kHeldOut)
                          : std::make_shared<data::Text>(o.data, o.seed, kHeldOut, o.spec.alphabet);
  train_count_ = text->length() - text->held_out_length();
  check(context_ >= 1 && context_ < train_count_, o.data, ": a context of ", context_, " needs a text of ", context_,
        " tokens and one more, this has ", train_count_, " to train on");
  take_rows(text, std::min(std::max<int64_t>(1, kTestCharacters / context_), text->held_out_windows(context_)));
  options_.spec.alphabet = text->alphabet();
  ModelShape shape = o.model.shape();
  shape.vocab = text->vocab();
  options_.model.fit(shape);
}

Source::Source(const TrainingOptions& o) : options_(o), context_(o.row_length > 0 ? o.row_length : o.model.context()) {
  switch (o.model.row().input) {
    case Input::images:
      take_images();
      break;
    case Input::pairs:
      take_pairs();
      break;
    case Input::text:
      take_text();
      break;
  }
}

Examples Source::batch(int64_t step) {
  if (step != next_step_) seek_(step);
  next_step_ = -1;  // until there is one
  const Examples e = next_();
  next_step_ = step + 1;
  return e;
}

std::string Source::sha256() const {
  if (!shows_pairs()) return io::sha256_of_files(files());
  io::Sha256 all;
  for (const std::string& file : files()) all.update(io::sha256_of_files({file}));
  return all.hex();
}

std::vector<std::string> Source::files() const {
  const std::string& data = options_.data;
  if (shows_images()) return data::image_files(data);
  if (data.empty()) return {};
  return shows_pairs() ? data::Pairs::files(data) : std::vector{data};
}

}  // namespace isonorm::training
