#include "training/source.h"

#include <algorithm>
#include <filesystem>

#include "autograd/ops/random.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "io/data/image_sets.h"
#include "io/data/loader.h"
#include "io/data/pairs.h"
#include "io/data/row_loader.h"
#include "io/data/text.h"
#include "io/sha256.h"
#include "nn/vit.h"
#include "training/spec/preprocessor.h"
#include "training/text_data.h"

namespace isonorm::training {
namespace {

constexpr int64_t kMadePairs = 4096;

int64_t letters(const TrainingOptions& o) { return o.letters > 0 ? o.letters : 13; }

// The text used if no file is given: random letters, long enough that each occurs, or sentences.
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

bool is_utf8(std::string_view s) {
  for (size_t at = 0; at < s.size();) {
    const int length = utf8_length(s.substr(at));
    if (length == 0) return false;
    at += static_cast<size_t>(length);
  }
  return true;
}

}  // namespace

template <class Loader> void Source::take_from(const std::shared_ptr<Loader>& loader) {
  seek_ = [=](int64_t step) { loader->seek(step); };
  next_ = [=] { return examples_of(loader->next()); };
}

template <class Set> void Source::take_rows(const std::shared_ptr<Set>& set) {
  take_from(std::make_shared<data::RowLoader<Set>>(
      *set, data::RowLoaderOptions{
                .rows = options_.batch, .length = context_, .prefetch = ahead(), .device = options_.device}));
  keeps_ = set;
}

template <class Set> void Source::take_test_rows(const std::shared_ptr<Set>& set, int64_t length, int64_t count) {
  test_count_ = count;
  test_rows_ = [set, length](int64_t begin, int64_t rows) {
    return examples_of(set->held_out_rows(begin, rows, length));
  };
}

void Source::take_images() {
  const TrainingOptions& o = options_;
  DataSpec& spec = options_.spec;
  ModelShape shape = o.model.shape();
  const bool trains = purpose_ == Purpose::training, has_scale = !spec.preprocessor.empty();
  Preprocessor preprocessor = preprocessor_of(spec, shape.image, shape.channels);
  const auto load = [&](const std::string& data, double held_out, bool tests_only) {
    return data::load_images(data, {.side = shape.image,
                                    .fit = preprocessor.fit,
                                    .classes = spec.classes,
                                    .held_out = held_out,
                                    .tests_only = tests_only});
  };
  const bool own_tests = o.test_data.empty(), only_tests = !trains && !own_tests;
  const std::string &place = only_tests ? o.test_data : o.data, folder = data::image_folder(place);
  data::ImageSets set = load(place, only_tests ? 1 : o.held_out(), !trains && has_scale);
  take_classes(set, folder);
  if (!has_scale) preprocessor.scale = data::measured_scale(set.train.size() > 0 ? set.train : set.test);
  preprocessor.scale.dtype = o.dtype;
  const Dims image = set.test.images.shape();
  check(shape.image == image[1] || shape.image == nn::VitOptions().image, folder, ": its images have a side of ",
        image[1], " pixels, the model's ", shape.image);
  shape.image = image[1];
  shape.channels = image.rank == 4 ? image[3] : 1;
  shape.classes = set.classes;
  if (!has_scale) spec.preprocessor = preprocessor.text(shape.image, shape.channels);
  data::LabelledImages test = set.test;
  if (trains && !own_tests) {
    data::ImageSets tests = load(o.test_data, 1, true);
    tests_match_classes_ = !tests.names.empty() && !set.names.empty();
    check(tests.classes <= set.classes, o.test_data, ": there are ", tests.classes, " classes, ", folder, " has ",
          set.classes);
    test = tests.test;
  }
  check(std::equal(image.begin() + 1, image.end(), test.images.shape().begin() + 1), o.test_data,
        ": its images have shape ", test.images.shape(), ", the training's ", image);
  train_count_ = set.train.size();
  check(!trains || set.classes > 1, folder, ": there is one class, ", data::class_list(set.names),
        "; expected two or more folders of pictures");
  check(!trains || o.batch <= train_count_, folder, ": there are ", train_count_, " images to train on, --batch ",
        o.batch, " is more");
  if (trains)
    take_from(std::make_shared<data::Loader<data::LabelledImages>>(
        set.train, data::LoaderOptions{.rows = o.batch,
                                       .seed = o.seed,
                                       .scale = preprocessor.scale,
                                       .augment = {.crop = o.random_crop, .flip = o.random_flip},
                                       .mixup = {.alpha = o.mixup, .classes = set.classes},
                                       .prefetch = ahead(),
                                       .device = o.device}));
  test_count_ = test.size();
  test_rows_ = [test, scale = preprocessor.scale](int64_t begin, int64_t rows) {
    return examples_of(data::slice_batch(test, begin, rows, scale));
  };
  options_.model.fit(shape);
}

void Source::take_classes(data::ImageSets& set, const std::string& place) {
  std::vector<std::string>& classes = options_.spec.classes;
  matches_classes_ = !set.names.empty() && !classes.empty();
  if (!set.names.empty()) classes = set.names;
  if (classes.empty()) return;
  for (const std::string& name : classes)
    check(is_utf8(name), place, ": the class ", Shown{name}, " has a name that is not UTF-8");
  check(set.classes <= std::ssize(classes), place, ": there are ", set.classes,
        " classes without names, the model has ", data::class_list(classes));
  set.classes = std::ssize(classes);
}

void Source::take_pairs() {
  const TrainingOptions& o = options_;
  const auto open = [&](const std::string& folder, double held_out, const data::Alphabet& alphabet) {
    const std::vector<std::string> files = data::Pairs::files(folder);
    auto pairs = std::make_shared<data::Pairs>(files[0], files[1], o.seed, held_out, alphabet);
    pairs->check_fits(context_);
    readings_.push_back(text(folder, ": ", pairs->count(), pairs->count() == 1 ? " pair" : " pairs"));
    return pairs;
  };
  std::shared_ptr<data::Pairs> pairs;
  if (purpose_ == Purpose::training || o.test_data.empty())
    pairs = o.data.empty()
                ? std::make_shared<data::Pairs>(data::Pairs::made(
                      o.task, kMadePairs, std::max<int64_t>(1, context_ - 1), letters(o), o.seed, o.held_out()))
                : open(o.data, o.held_out(), o.spec.alphabet);
  if (purpose_ == Purpose::training) {
    train_count_ = pairs->count() - pairs->held_out_count();
    take_rows(pairs);
  }
  if (!o.test_data.empty()) pairs = open(o.test_data, 1, pairs ? pairs->alphabet() : o.spec.alphabet);
  const int64_t most = purpose_ == Purpose::training ? kMostTestTokens / context_ + 1 : pairs->held_out_count();
  take_test_rows(pairs, context_, std::min(most, pairs->held_out_count()));
  if (!o.data.empty()) options_.spec.alphabet = pairs->alphabet();
  ModelShape shape = o.model.shape();
  shape.vocab = pairs->vocab();
  options_.model.fit(shape);
}

void Source::take_text() {
  const TrainingOptions& o = options_;
  const auto open = [&](const std::string& path, double held_out, const data::Alphabet& alphabet) {
    OpenText opened = open_text(path, o, held_out, alphabet, purpose_ == Purpose::evaluation ? "" : "isonorm train ");
    readings_.push_back(std::move(opened.reading));
    test_file_tokens_ = opened.text->length(), test_file_bytes_ = opened.bytes;  // of the file that was opened last
    return opened.text;
  };
  std::shared_ptr<data::Text> text;
  if (purpose_ == Purpose::training || o.test_data.empty())
    text = o.data.empty()
               ? std::make_shared<data::Text>(memory_bytes(own_text(o), "own text"), o.seed, 0, o.spec.alphabet)
               : open(o.data, o.held_out(), o.spec.alphabet);
  if (purpose_ == Purpose::training) {
    train_count_ = text->length() - text->held_out_length();
    check(context_ >= 1 && context_ < train_count_, o.data, ": a context of ", context_, " needs a text of ", context_,
          " tokens and one more, this has ", train_count_, " to train on");
    take_rows(text);
  }
  if (!o.test_data.empty()) text = open(o.test_data, 1, text ? text->alphabet() : o.spec.alphabet);
  take_held_out(text);
  options_.spec.alphabet = text->alphabet();
  if (text->alphabet().empty()) options_.token_vocab = text->vocab();
  ModelShape shape = o.model.shape();
  shape.vocab = text->vocab();
  options_.model.fit(shape);
}

void Source::take_held_out(const std::shared_ptr<data::Text>& text) {
  held_out_tokens_ = text->held_out_length();
  const bool is_short = purpose_ == Purpose::evaluation && text->held_out_windows(context_) == 0;
  const bool whole = is_short || !options_.test_data.empty();
  const int64_t length = whole ? std::clamp<int64_t>(held_out_tokens_ - 1, 1, context_) : context_;
  const int64_t windows = whole ? text->all_held_out_windows(length) : text->held_out_windows(length);
  const int64_t most = purpose_ == Purpose::training ? std::max<int64_t>(1, kMostTestTokens / length) : windows;
  take_test_rows(text, length, std::min(most, windows));
  test_tokens_ = std::max<int64_t>(0, std::min(test_count_ * length, held_out_tokens_ - 1));
}

Source::Source(const TrainingOptions& o, Purpose purpose)
    : options_(o), purpose_(purpose), context_(o.row_length > 0 ? o.row_length : o.model.context()) {
  options_.test_share = o.held_out();
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
  next_step_ = -1;  // no batch yet
  const Examples e = next_();
  next_step_ = step + 1;
  return e;
}

std::optional<Input> kind_of_data(const std::string& data) {
  if (data.empty()) return {};
  const std::vector<std::string> pairs = data::Pairs::files(data);
  if (file_exists(pairs[0]) && file_exists(pairs[1])) return Input::pairs;
  if (data::holds_images(data)) return Input::images;
  if (file_exists(data) && !std::filesystem::is_directory(data) && !data::is_picture(data)) return Input::text;
  return {};
}

const ModelRow* model_for(const std::string& data) {
  const std::optional<Input> kind = kind_of_data(data);
  const auto reads = [&](const ModelRow* row) { return row->input == kind; };
  return kind ? *std::ranges::find_if(kModels, reads) : nullptr;
}

const char* data_noun(Input input) {
  return input == Input::images ? "a folder of images" : input == Input::pairs ? "a folder of pairs" : "a text file";
}

std::vector<std::string> files_of_data(Input input, const std::string& data) {
  if (input == Input::images) return data::image_files(data);
  if (data.empty()) return {};
  return input == Input::pairs ? data::Pairs::files(data) : std::vector{data};
}

std::string data_sha256(Input input, const std::string& data) {
  const std::vector<std::string> files = files_of_data(input, data);
  const std::string counts = input == Input::images ? data::class_counts(data) : "";
  if (input != Input::pairs && counts.empty()) return io::sha256_of_files(files);
  io::Sha256 all;
  all.update(counts);
  if (input == Input::images) {
    all.update(io::sha256_of_files(files));
    return all.hex();
  }
  for (const std::string& file : files) all.update(io::sha256_of_files({file}));
  return all.hex();
}

std::string scale_text(const DataSpec& spec, const ModelShape& shape) {
  const data::PixelScale scale = preprocessor_of(spec, shape.image, shape.channels).scale;
  const auto list = [](const std::vector<double>& numbers) {
    const bool alike = std::ranges::count(numbers, numbers[0]) == std::ssize(numbers);
    std::string words;
    for (const double x : std::span(numbers).first(alike ? 1 : numbers.size()))
      words += text(words.empty() ? "" : " ", shortest(x));
    return words;
  };
  return text("mean ", list(scale.mean), ", standard deviation ", list(scale.std));
}

std::vector<std::string> spec_notes(const DataSpec& file, const Source& source) {
  std::vector<std::string> notes;
  const TrainingOptions& o = source.options();
  if (!o.spec.alphabet.empty() && file.alphabet.empty())
    notes.push_back("the model has no alphabet: its tokens are the bytes of the data, in ascending order");
  if (o.model.row().input != Input::images) return notes;
  if (source.matches_classes() && file.classes != o.spec.classes)
    notes.push_back(text("the head has the classes ", data::class_list(file.classes), "; the data have ",
                         data::class_list(o.spec.classes),
                         ": a class keeps its row by name, a new one starts with the mean of all rows"));
  if (!source.matches_classes())
    notes.push_back(
        text("classes go by position: ", file.classes.empty() ? "the model has" : "the data have", " no class names"));
  if (file.preprocessor.empty())
    notes.push_back(text("the model has no pixel scale: using the data's, ", scale_text(o.spec, o.model.shape())));
  return notes;
}

}  // namespace isonorm::training
