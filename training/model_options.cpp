#include "training/model_options.h"

#include <algorithm>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "core/formulas/round_up.h"
#include "core/system/foreign_text.h"
#include "training/from_outside.h"

namespace isonorm::training {
namespace {

constexpr const char* kKind = "model.kind";
constexpr int64_t kLongestContext = int64_t{1} << 20;  // no parameter vouches for that of rotary positions

const ModelRow& row_of_kind(const Metadata& description, ModelList models) {
  const auto kind = description.find(kKind);
  check(kind != description.end(), "model file: it does not say what model it holds (no entry '", kKind, "')");
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

// f(option of a training, the same of its Transformer).
template <class T, class F> void visit_shared(T& o, nn::TransformerOptions& t, F&& f) {
  f(o.width, t.width), f(o.depth, t.depth), f(o.heads, t.heads), f(o.head_width, t.head_width), f(o.mlp, t.mlp_width);
  f(o.kv_heads, t.kv_heads), f(o.norm_bias, t.norm_bias), f(o.scaled_gains, t.scaled_gains),
      f(o.initialisation, t.initialisation);
  f(o.activation, t.activation), f(o.positions, t.positions), f(o.affine, t.affine), f(o.bias, t.bias);
  f(o.eps, t.eps), f(o.final_norm, t.final_norm), f(o.branch, t.branch), f(o.connection, t.connection),
      f(o.precision, t.precision);
}

}  // namespace

ModelOptions::ModelOptions(const Metadata& description, ModelList models)
    : row_(&row_of_kind(description, models)), options_(row_->options()) {
  TrainingOptions o;
  ModelShape shape;
  size_t known = 1;  // the kind
  for (const NamedOption& option : visited(o, shape)) {
    const auto at = description.find(text(kOptionPrefix, option.name));
    if (at == description.end() && std::ranges::count(kLaterOptions, option.name) > 0) continue;
    check(at != description.end(), "model file: there is no entry '", kOptionPrefix, option.name, "'");
    check(option.set(at->second), "model file: entry '", kOptionPrefix, option.name, "' is ", Shown{at->second},
          ", which it cannot be");
    ++known;
  }
  check(known == description.size(), "model file: it has ", description.size(), " entries '", kOptionPrefix,
        "...', the options are ", known);
}

ModelOptions::ModelOptions(const TrainingOptions& options, const ModelShape& data, const streams::Stream& stream)
    : ModelOptions(*options.model, options.model->options()) {
  TrainingOptions o = options;
  ModelShape shape = data;
  for (const NamedOption& option : visited(o, shape))
    if (option.take) option.take();
  nn::TransformerOptions& t = transformer();
  visit_shared(o, t, [](const auto& from, auto& to) { to = from; });
  stream_ = stream.options();
}

ModelOptions ModelOptions::preset(const ModelRow& row, std::string_view name) {
  check(row.preset != nullptr, "preset '", name, "': of a ", row.name, " no size is known by name");
  return ModelOptions(row, row.preset(name));
}

ModelOptions::ModelOptions(const ModelRow& row, std::any options) : row_(&row), options_(std::move(options)) {
  stream_.form = streams::form_of(transformer().norm);
}

std::optional<ModelOptions> ModelOptions::of(const nn::Module& module, ModelList models) {
  for (const ModelRow* row : models)
    if (std::any options = row->options_of(module); options.has_value()) {
      ModelOptions found(*row, std::move(options));
      if (const streams::Stream* on = streams::stream_of(module)) found.stream_ = on->options();
      return found;
    }
  return {};
}

std::vector<NamedOption> ModelOptions::visited(TrainingOptions& o, ModelShape& shape) {
  OptionVisitor visitor;
  row_->visit(options_, o, shape, visitor);
  if (row_->transformer) visit_options(transformer(), visitor);
  visit_options(stream_, visitor);
  return std::move(visitor.options);
}

void ModelOptions::untie() {
  TrainingOptions o;
  ModelShape shape;
  for (const NamedOption& option : visited(o, shape))
    if (option.name == "tied") option.set("false");
}

void ModelOptions::give(TrainingOptions& o, ModelShape& shape) const {
  ModelOptions copy = *this;
  o.model = row_;
  for (const NamedOption& option : copy.visited(o, shape))
    if (option.give) option.give();
  visit_shared(o, copy.transformer(), [](auto& to, const auto& from) { to = from; });
}

void ModelOptions::check_size(const TensorMap& state) const {
  int64_t held = 0;
  for (const auto& [name, tensor] : state) held += tensor.numel();
  const auto mul = [](int64_t a, int64_t b) { return checked_mul(a, b, "model file: size"); };
  const auto add = [](int64_t a, int64_t b) { return checked_add(a, b, "model file: size"); };
  nn::TransformerOptions t = transformer().complete();
  if (!row_->transformer) t.depth = 0;
  const int64_t blocks = add(t.depth, row_->more_blocks(options_)), tensors = state.size();
  check(t.depth >= 0 && blocks >= t.depth && blocks <= tensors, "model file: a model of these options has ", blocks,
        " blocks, the file holds ", tensors, " tensors");
  const int64_t block = mul(t.width, add(mul(4, mul(t.heads, t.head_width)), mul(2, t.mlp_width)));
  const int64_t rows = row_->stream_rows(options_);
  const int64_t claimed = row_->transformer ? add(mul(blocks, block), mul(t.width, rows)) : rows;
  // Compressed storage of the smallest stream holds half of it.
  check(claimed / 4 <= held, "model file: a model of these options has about ", claimed, " parameters, the file holds ",
        held);
}

std::unique_ptr<nn::Module> ModelOptions::build() const {
  std::unique_ptr<nn::Module> model = make();
  model->to(DType::f64);
  model->eval();
  return model;
}

Metadata ModelOptions::as_written() const {
  ModelOptions copy = *this;
  TrainingOptions o;
  ModelShape shape;
  Metadata m{{kKind, row_->name}};
  for (const NamedOption& option : copy.visited(o, shape)) m.emplace(text(kOptionPrefix, option.name), option.text());
  return m;
}

Metadata ModelOptions::description() const {
  ModelOptions completed = *this;
  nn::TransformerOptions& t = completed.transformer();
  t = t.complete();
  t.causal = t.causal || row_->causal;
  return completed.as_written();
}

Tensor ModelOptions::inputs(int64_t rows, uint64_t seed) const {
  TrainingOptions o;
  ModelShape shape;
  give(o, shape);
  Generator generator{seed, 0};
  if (row_->input == Input::images)
    return randn({rows, shape.image, shape.image, shape.channels}, {DType::f64}, generator);
  const bool pairs = row_->input == Input::pairs;
  const int64_t vocab = shape.vocab, context = pairs ? checked_mul(2, o.context, "model file: inputs") : o.context;
  check(vocab > 0 && context > 0 && context <= kLongestContext, "model file: a vocabulary of ", vocab,
        " and a context of ", context, " cannot be shown, expected 1 to ", kLongestContext, " positions");
  rows = std::max(rows, ceil_div(vocab, context));
  const Tensor every = randperm(vocab, kCpu, generator),
               more = randint(0, vocab, {checked_mul(rows, context, "model file: inputs") - vocab}, kCpu, generator);
  const Tensor ids = reshape(cat({every, more}, 0), {rows, context});
  if (pairs && vocab > 1) {  // no source of padding alone
    const Tensor first = narrow(ids, 1, 0, 1);
    copy_into(first, where(eq(first, data::kPad), from_vector(std::vector<int64_t>{1}, {1, 1}), first));
  }
  return ids;
}

Metadata describe(const nn::Module& model, ModelList models) {
  const std::optional<ModelOptions> options = ModelOptions::of(model, models);
  check(options.has_value(), "describe: the model is none of those that are listed");
  const nn::Arrangement& connection = options->transformer().connection;
  check(listed(connection), "describe: the connections ", name_and_origin(connection),
        " are none that a file can name");
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
