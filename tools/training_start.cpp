#include "tools/training_start.h"

#include <algorithm>
#include <numeric>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "equivalence/verify/verify.h"
#include "io/data/image_sets.h"
#include "io/sha256.h"
#include "nn/skip_init.h"
#include "streams/stream.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/records/training_result.h"
#include "training/spec/preprocessor.h"

namespace isonorm::tools {

using namespace equivalence;

namespace {

constexpr const char *kEarlier = "earlier", *kTestData = "test_data";

// What may differ between the weights of --init and the model beside options of training alone: coordinates, and whether gains are in
// their readers already.
constexpr std::string_view kFreeOfInit[] = {"model.form", "model.storage", "model.centre_readers", "model.folded",
                                            "model.layer_scale"};

// The options of two models, whatever coordinates their streams are in.
void check_same_model(const training::ModelOptions& file, const training::ModelOptions& asked) {
  const streams::FormRow &theirs = row_of(file.stream().form), &ours = row_of(asked.stream().form);
  check(theirs.form == ours.form || (theirs.layer_norm_model() && ours.layer_norm_model()), "its stream is ",
        theirs.name, ", asked for is ", ours.name, ", which is another function");
  const Metadata other = file.description();
  for (const auto& [name, value] : asked.description()) {
    const auto at = other.find(name);
    const std::string theirs = at == other.end() ? "nothing" : at->second;
    const bool free = std::ranges::count(kFreeOfInit, name) > 0 || training::is_training_only(name);
    check(free || theirs == value, "its ", name, " is ", printable(theirs, 80), ", asked for is ", value);
  }
}

// Gains and biases of `model` that a conversion has put into their readers: ones and zeros take their places.
void unfold(training::ModelFile& file, const nn::Module& model) {
  const training::ModelOptions options(file.description);
  if (!options.transformer().folded) return;
  const nn::SkipInit skip;  // names alone are read
  const TensorMap there = options.make()->state_dict();
  for (const auto& [name, tensor] : model.state_dict())
    if (!there.find(name)) file.state.add(name, name.ends_with("bias") ? zeros_like(tensor) : ones_like(tensor));
}

// The rows of a tensor that has one for each token or class: row i becomes row from[i]. If that is -1, it becomes the mean of all
// rows: a model that knows nothing of a token gives it less than its share of probability (Hewitt, Initializing New Word
// Embeddings for Pretrained Language Models, 2021).
Tensor with_rows(const Tensor& x, const std::vector<int64_t>& from) {
  const Tensor average = mean(x, {0}, true);
  std::vector<Tensor> rows;
  for (const int64_t i : from) rows.push_back(i < 0 ? average : narrow(x, 0, i, 1));
  return cat(rows);
}

// Appends rows to the tensors with `before` rows whose counterparts in `model` have `now` rows: one row for each token.
void add_rows(TensorMap& state, const TensorMap& model, int64_t before, int64_t now) {
  std::vector<int64_t> from(static_cast<size_t>(now), -1);
  std::iota(from.begin(), from.begin() + before, 0);
  TensorMap grown;
  for (const auto& [name, tensor] : state) {
    const Tensor* own = model.find(name);
    const bool rows =
        own && tensor.rank() > 0 && own->rank() == tensor.rank() && tensor.size(0) == before && own->size(0) == now;
    grown.add(name, rows ? with_rows(tensor, from) : tensor);
  }
  state = std::move(grown);
}

// The head's rows in the order of other class names.
void match_classes(TensorMap& state, const std::vector<std::string>& before, const std::vector<std::string>& now) {
  std::vector<int64_t> from;
  for (const std::string& name : now) {
    const auto at = std::ranges::find(before, name);
    from.push_back(at == before.end() ? -1 : at - before.begin());
  }
  TensorMap matched;
  for (const auto& [name, tensor] : state) {
    const bool rows = name.starts_with("head.") && tensor.rank() > 0 && tensor.size(0) == std::ssize(before);
    matched.add(name, rows ? with_rows(tensor, from) : tensor);
  }
  state = std::move(matched);
}

}  // namespace

training::Manifest manifest_of(const TrainOptions& o, const training::Source& source) {
  training::Manifest m = manifest_of(source.options());
  m.data_sha256 = source.sha256();
  m.options.emplace_back("init", o.init);
  TrainOptions given = o;
  training::Fields own;
  fields(given, own);
  for (const training::Option& option : own.options) m.options.emplace_back(option.name, option.text());
  const int ranks = o.training.ranks;
  m.command = text(ranks > 1 ? text("mpirun -np ", ranks, " ") : "", "isonorm train", training::said(given_of(o)));
  return m;
}

Metadata identity(const TrainOptions& o, const training::Source& source) {
  Metadata m = source.options().model.description();
  for (const auto& [name, value] : manifest_of(o, source).options)
    if (is_of_identity(name) && name != "init" && name != "model" && !m.contains(text(training::kOptionPrefix, name)))
      m.emplace(name, value);
  m.emplace(training::kTrainingData, "sha256:" + source.sha256());  // wherever it lies
  if (!o.training.test_data.empty()) m.emplace(kTestData, "sha256:" + source.test_sha256());
  // A checkpoint holds this already, so a training that goes on does not need the file.
  if (file_exists(o.init)) m.emplace("init", "sha256:" + io::sha256_of_files({o.init}));
  return m;
}

Metadata kept(const TrainOptions& o) {
  TrainOptions shown = o;
  training::Fields own;
  fields(shown, own);
  Metadata values;
  for (const training::Option& option : own.options)
    if (is_kept(option.name)) values.emplace(option.name, option.text());
  return values;
}

Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, const TrainOptions& o,
                   Metadata asked) {
  const auto before = [&](const std::string& key) {
    const auto at = checkpoint.values.find(key);
    return at == checkpoint.values.end() || at->second.empty() ? "nothing" : printable(at->second, 80);
  };
  const auto differs = [&](const std::string& key) {
    return asked.contains(key) && (!checkpoint.values.contains(key) || checkpoint.values.at(key) != asked.at(key));
  };
  std::string changed;
  const auto hold = [&](const std::string& name, const std::string& key) {
    if (!differs(key)) return;
    const bool may = std::ranges::count(training::kExtendable, name) > 0;
    check(may && o.extend, path, ": was trained with ", training::word_of(name), " ", before(key), ", asked for is ",
          asked[key], may ? "; --extend goes on with that" : "");
    changed += text(" ", training::word_of(name), " ", before(key));
  };
  hold("model", "model.kind");
  check(!differs("data"), path, ": was trained on other data: their checksum is ", before("data"), ", that of --data ",
        asked["data"]);
  check(!differs(kTestData) && checkpoint.values.contains(kTestData) == asked.contains(kTestData), path,
        ": was trained with other test data: their checksum is ", before(kTestData), ", that of --test-data ",
        asked.contains(kTestData) ? asked[kTestData] : "nothing");
  const bool other_weights = !o.init.empty() && !checkpoint.values.contains("init");
  check(!other_weights && !differs("init"), path,
        ": did not begin with the weights of --init, which are for a new checkpoint");
  // In the order of the options: what others follow from (the width of a head) is named first.
  training::ModelOptions model = o.training.model;
  for (const training::Option& option : model.options()) hold(option.name, text(training::kOptionPrefix, option.name));
  for (const auto& [key, value] : asked) hold(key, key);
  for (const auto& [key, value] : checkpoint.values)
    check(asked.contains(key) || is_kept(key) || key == "step" || key == "init" || key == kEarlier || key == kTests ||
              training::is_spec_entry(key),
          path, ": it was trained with ", Shown{key}, ", which this program does not know");
  for (const char* kept : {"init", kEarlier})
    if (const auto at = checkpoint.values.find(kept); at != checkpoint.values.end()) asked.insert(*at);
  if (changed.empty()) return asked;
  std::string& earlier = asked[kEarlier];
  earlier += text(earlier.empty() ? "" : "; ", "to step ", step, " with", changed);
  return asked;
}

TensorMap initial_weights(const std::string& path, const nn::Module& model, DType dtype, const training::DataSpec& spec,
                          bool more_tokens) {
  training::ModelFile file = training::load_model_file(path);
  if (!file.description.empty()) {
    const Scope scope(path);
    const streams::Form stored = training::stored_form(training::ModelOptions(file.description));
    if (row_of(stored).centres) {
      ModelConversion raw = convert_model(file, streams::Form::layer_norm);
      file.state = std::move(raw.conversion.exact), file.description = std::move(raw.description);
    }
    training::ModelOptions theirs(file.description);
    const training::ModelOptions ours(training::describe(model));
    const int64_t before = theirs.number("vocab"), now = ours.number("vocab");
    if (more_tokens) theirs.fit({{"vocab", now}});
    const std::vector<std::string> classes = training::DataSpec::of(file.other).classes;
    const bool other_classes = !classes.empty() && !spec.classes.empty() && classes != spec.classes;
    if (other_classes) theirs.set({"classes", std::ssize(spec.classes)});
    check_same_model(theirs, ours);
    unfold(file, model);
    if (before != theirs.number("vocab")) add_rows(file.state, model.state_dict(), before, now);
    if (other_classes) match_classes(file.state, classes, spec.classes);
  }
  TensorMap weights;
  for (const auto& [name, tensor] : file.state)
    weights.add(name, is_floating(tensor.dtype()) ? tensor.to(dtype) : tensor);
  return weights;
}

std::string scale_text(const training::DataSpec& spec, const training::ModelShape& shape) {
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

std::vector<std::string> spec_notes(const training::DataSpec& file, const training::Source& source) {
  std::vector<std::string> notes;
  const training::TrainingOptions& o = source.options();
  if (!o.spec.alphabet.empty() && file.alphabet.empty())
    notes.push_back("the model does not say which bytes it knows: taking those of the data, in ascending order");
  if (o.model.row().input != training::Input::images) return notes;
  if (source.matches_classes() && file.classes != o.spec.classes)
    notes.push_back(text("the head has the classes ", data::class_list(file.classes), "; those of the data are ",
                         data::class_list(o.spec.classes),
                         ": a class keeps its row by name, a new one begins with the mean of all rows"));
  if (!source.matches_classes())
    notes.push_back(
        text("classes go by position: ", file.classes.empty() ? "the model has" : "the data have", " no class names"));
  if (file.preprocessor.empty())
    notes.push_back(
        text("the model has no pixel scale: taking that of the data, ", scale_text(o.spec, o.model.shape())));
  return notes;
}

}  // namespace isonorm::tools
