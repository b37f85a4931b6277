#include "training/model_options.h"

#include <algorithm>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "core/formulas/round_up.h"
#include "core/system/foreign_text.h"
#include "nn/modes.h"
#include "training/fields.h"
#include "training/from_outside.h"

namespace isonorm::training {
namespace {

const ModelRow& row_of_kind(const Metadata& description, ModelList models) {
  const auto kind = description.find(kModelKind);
  check(kind != description.end(), "model file: it does not say what model it holds (no entry '", kModelKind, "')");
  std::vector<std::string> names;
  for (const ModelRow* row : models) {
    if (kind->second == row->name) return *row;
    names.emplace_back(row->name);
  }
  std::sort(names.begin(), names.end());
  std::string expected;
  for (const std::string& name : names) expected += text(expected.empty() ? "" : " or ", name);
  check(false, "model file: the model is a ", Shown{kind->second}, ", expected ", expected);
  return *models[0];
}

const ModelRow& checked(const ModelRow& m) {
  check(m.name && m.title && m.noun, "model: a row lacks its name, title or noun");
  check(m.defaults && m.config_of, "model: the row ", m.name,
        " has no defaults or no config_of; make rows with row_of()");
  return m;
}

}  // namespace

ModelOptions::ModelOptions(const ModelOptions& o)
    : row_(o.row_), config_(o.config_->clone()), plain_(o.plain_), stream_(o.stream_) {}

ModelOptions& ModelOptions::operator=(ModelOptions o) {
  row_ = o.row_, config_ = std::move(o.config_), plain_ = o.plain_, stream_ = o.stream_;
  return *this;
}

ModelOptions::ModelOptions(const ModelRow& row, const nn::TransformerOptions& given,
                           std::initializer_list<NamedValue> own)
    : ModelOptions(row, checked(row).defaults()) {
  transformer() = given;
  take_defaults();
  for (const NamedValue& option : own) set(option);
}

ModelOptions::ModelOptions(const Metadata& description, ModelList models)
    : ModelOptions(row_of_kind(description, models)) {
  size_t known = 1;  // the kind
  for (const Option& option : options()) {
    const std::string key = text(kOptionPrefix, option.name);
    const auto at = description.find(key);
    const auto older = std::ranges::find(kNewModelOptions, option.name, [](const auto& o) { return o.first; });
    check(at != description.end() || older != std::end(kNewModelOptions), "model file: there is no entry '", key, "'");
    const std::string word = at != description.end() ? at->second : older->second;
    check(option.set(word), "model file: entry '", key, "' is ", Shown{word}, ", expected ", option.expected);
    known += at != description.end();
  }
  check(!row_->causal || transformer().causal, "model file: entry 'model.causal' is 'false', expected true: a ",
        row_->title, " is causal");
  if (known == description.size()) return;
  for (const auto& [key, value] : description)
    check(key == kModelKind || is_removed(key, value) ||
              (key.starts_with(kOptionPrefix) && has(key.substr(kOptionPrefix.size()))),
          "model file: entry ", Shown{key}, " is not an option of a ", row_->name);
}

ModelOptions ModelOptions::preset(const ModelRow& row, std::string_view name) {
  check(row.preset != nullptr, "preset '", name, "': of a ", row.name, " no size is known by name");
  return ModelOptions(row, row.preset(name));
}

ModelOptions::ModelOptions(const ModelRow& row, std::unique_ptr<ModelConfig> config)
    : row_(&row), config_(std::move(config)) {
  take_defaults();
}

void ModelOptions::take_defaults() {
  stream_.form = streams::form_of(transformer().norm);
  transformer().norm = NormKind::layer;
  transformer().causal |= row_->causal;
}

std::optional<ModelOptions> ModelOptions::of(const nn::Module& module, ModelList models) {
  for (const ModelRow* row : models)
    if (std::unique_ptr<ModelConfig> config = row->config_of(module)) {
      ModelOptions found(*row, std::move(config));
      if (const streams::Stream* on = streams::stream_of(module)) found.stream_ = on->options();
      return found;
    }
  return {};
}

std::vector<Option> ModelOptions::options(std::string_view only) {
  Fields f{.only = only};
  config_->fields(f);
  if (config_->transformer()) fields(*config_->transformer(), f);
  fields(stream_, f);
  return std::move(f.options);
}

bool ModelOptions::has(std::string_view name) const { return !const_cast<ModelOptions*>(this)->options(name).empty(); }

std::string ModelOptions::value(std::string_view name) const {
  const std::vector<Option> found = const_cast<ModelOptions*>(this)->options(name);
  return found.empty() ? std::string() : found[0].text();
}

int64_t ModelOptions::number(std::string_view name) const {
  int64_t number = 0;
  Word<int64_t>::read(value(name), number);
  return number;
}

std::string ModelOptions::first_without(unsigned marks) const {
  ModelOptions copy = *this, fresh(*row_);
  const std::vector<Option> mine = copy.options(), defaults = fresh.options();
  for (size_t i = 0; i < mine.size(); ++i)
    if (!(mine[i].marks & marks) && mine[i].text() != defaults[i].text())
      return text(mine[i].name, ' ', mine[i].text(), ", expected ", defaults[i].text());
  return {};
}

void ModelOptions::set(const NamedValue& wanted) {
  const std::vector<Option> found = options(wanted.name);
  check(!found.empty(), row_->name, ": it has no option ", wanted.name);
  check(found[0].set(wanted.word), row_->name, ": ", wanted.name, " is ", Shown{wanted.word}, ", expected ",
        found[0].expected);
}

ModelShape ModelOptions::shape() const {
  return {
      .image = number("image"), .channels = number("channels"), .classes = number("classes"), .vocab = number("vocab")};
}

void ModelOptions::fit(std::initializer_list<NamedValue> options) {
  for (const NamedValue& option : options)
    if (has(option.name)) set(option);
}

void ModelOptions::check_size(const TensorMap& state) const {
  int64_t held = 0;
  for (const auto& [name, tensor] : state) held += tensor.numel();
  const auto mul = [](int64_t a, int64_t b) { return checked_mul(a, b, "model file: size"); };
  const auto add = [](int64_t a, int64_t b) { return checked_add(a, b, "model file: size"); };
  const ModelOptions whole = complete();
  nn::TransformerOptions t = whole.transformer();
  if (!config_->transformer()) t.depth = 0;
  const int64_t blocks = add(t.depth, whole.config_->more_blocks()), tensors = state.size();
  check(t.depth >= 0 && blocks >= t.depth && blocks <= tensors, "model file: a model of these options has ", blocks,
        " blocks, the file holds ", tensors, " tensors");
  const int64_t block = mul(t.width, add(mul(4, mul(t.heads, t.head_width)), mul(2, t.mlp_width)));
  const int64_t rows = whole.config_->stream_rows();
  const int64_t claimed = config_->transformer() ? add(mul(blocks, block), mul(t.width, rows)) : rows;
  // Compressed storage of a stream of width 2 holds only half of the parameters.
  check(claimed / 4 <= held, "model file: a model of these options has about ", claimed, " parameters, the file holds ",
        held);
}

std::unique_ptr<nn::Module> ModelOptions::build() const {
  const nn::SkipInit skip;
  std::unique_ptr<nn::Module> model = make();
  model->to(DType::f64);
  model->eval();
  return model;
}

std::unique_ptr<nn::Module> build_model(const TrainingOptions& o, const streams::StreamOptions& stream) {
  check_rows(o);
  std::unique_ptr<nn::Module> model = o.model.make(stream);
  check(model != nullptr, "model: the row ", o.model.row().name, " made none");
  model->to(o.dtype);
  model->to(o.device);
  return model;
}

Metadata ModelOptions::as_written() const {
  ModelOptions copy = *this;
  Metadata m{{kModelKind, row_->name}};
  for (const Option& option : copy.options()) m.emplace(text(kOptionPrefix, option.name), option.text());
  return m;
}

ModelOptions ModelOptions::complete() const {
  ModelOptions completed = *this;
  completed.config_->complete();
  return completed;
}

Tensor ModelOptions::inputs(int64_t rows, uint64_t seed) const {
  const ModelShape shape = this->shape();
  Generator generator{seed, 0};
  if (row_->input == Input::images)
    return randn({rows, shape.image, shape.image, shape.channels}, {DType::f64}, generator);
  const bool pairs = row_->input == Input::pairs;
  const int64_t vocab = shape.vocab, time = shown_context(), context = pairs ? 2 * time : time;
  check(vocab > 0 && time > 0, "model file: a vocabulary of ", vocab, " and a context of ", time, " cannot be shown");
  rows = std::max(std::min(rows, kMostTokens / time), ceil_div(vocab, context));
  const Tensor every = randperm(vocab, kCpu, generator),
               more = randint(0, vocab, {checked_mul(rows, context, "model file: inputs") - vocab}, kCpu, generator);
  const Tensor ids = reshape(cat({every, more}, 0), {rows, context});
  if (pairs && vocab > 1) {  // no source of padding alone
    const Tensor first = narrow(ids, 1, 0, 1);
    copy_into(first, where(eq(first, data::kPad), from_vector(std::vector<int64_t>{1}, {1, 1}), first));
  }
  return ids;
}

namespace {

template <class Keep> std::string names_of(const char* separator, Keep keep) {
  std::string names;
  for (const ModelRow* row : kModels)
    if (keep(*row)) names += text(names.empty() ? "" : separator, row->name);
  return names;
}

}  // namespace

bool has(const ModelRow& row, std::string_view option) { return ModelOptions(row).has(option); }

bool is_training_only(std::string_view key) {
  if (!key.starts_with(kOptionPrefix)) return false;
  return std::ranges::any_of(kModels, [&](const ModelRow* row) {
    const std::vector<Option> found = ModelOptions(*row).options(key.substr(kOptionPrefix.size()));
    return !found.empty() && (found[0].marks & kTrainingOnly) != 0;
  });
}

std::string models_with(std::string_view option, const char* separator) {
  return names_of(separator, [&](const ModelRow& row) { return has(row, option); });
}

std::string models_with(Input input, const char* separator) {
  return names_of(separator, [&](const ModelRow& row) { return row.input == input; });
}

Metadata describe(const nn::Module& model, ModelList models) {
  const std::optional<ModelOptions> options = ModelOptions::of(model, models);
  check(options.has_value(), "describe: no row has the model's class");
  const nn::Arrangement& connection = options->transformer().connection;
  check(listed(connection), "describe: the connections ", name_and_origin(connection),
        " are none that a file can name");
  for (const nn::NamedParameter& p : model.named_parameters())
    check(
        !nn::has_added(p.parametrisations), "describe: '", p.name,
        "' has a parametrisation that was added to the model, which a file cannot name; the stored tensors are not the "
        "weights of the model");
  return options->as_written();
}

void check_carried(const nn::TransformerOptions& o) {
  check(listed(o.connection), "the model's connections are ", name_and_origin(o.connection),
        ", expected some of this library, whose weights can be carried from form to form");
}

void check_full_precision(const nn::MixedPrecision& precision, const char* verb) {
  check(precision == nn::MixedPrecision(), verb, ": the precision is ", name_of(precision.products),
        ", expected full: how far rounding may carry the forms apart is known for one dtype throughout");
}

streams::Form stored_form(const ModelOptions& options) {
  const streams::StreamOptions& s = options.stream();
  const bool raw = s.storage == streams::Stored::raw && row_of(s.form).layer_norm_model();
  return raw ? streams::Form::layer_norm : s.form;
}

}  // namespace isonorm::training
