#include "training/model_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <type_traits>

#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "core/formulas/round_up.h"
#include "io/checkpoint.h"
#include "io/name_pattern.h"
#include "nn/residual/all.h"
#include "training/option_text.h"

namespace isonorm::training {
namespace {

constexpr std::string_view kPrefix = "model.";
constexpr const char* kKind = "model.kind";
constexpr int64_t kLongestContext = int64_t{1} << 20;  // no parameter vouches for that of rotary positions

template <class T> std::string written(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return ValueNames<T>::names[static_cast<size_t>(value)];
  } else if constexpr (std::is_same_v<T, nn::Arrangement>) {
    return value.name;
  } else if constexpr (std::is_same_v<T, double>) {
    char buffer[32];
    return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};  // the shortest text that reads back
  } else {
    return text(value);
  }
}

template <class T> bool read(const std::string& word, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = word == "true";
    return value || word == "false";
  } else if constexpr (std::is_enum_v<T>) {
    int i = 0;
    for (const char* name : ValueNames<T>::names) {
      if (word == name) {
        value = static_cast<T>(i);
        return true;
      }
      ++i;
    }
    return false;
  } else if constexpr (std::is_same_v<T, nn::Arrangement>) {
    for (const nn::Arrangement& a : nn::kArrangements)
      if (word == a.name) value = a;
    return word == value.name;
  } else {
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && stop == word.data() + word.size();
  }
}

template <class O> Metadata written_options(O options, const char* kind) {
  Metadata m{{kKind, kind}};
  visit_options(options, [&](const char* name, const auto& value) { m.emplace(text(kPrefix, name), written(value)); });
  return m;
}

template <class O> void read_options(const Metadata& m, O& options) {
  size_t known = 1;  // the kind
  visit_options(options, [&](const char* name, auto& value) {
    const auto at = m.find(text(kPrefix, name));
    if (at == m.end() && std::ranges::count(kLaterOptions, name) > 0) return;
    check(at != m.end(), "model file: there is no entry '", kPrefix, name, "'");
    check(read(at->second, value), "model file: entry '", kPrefix, name, "' is '", at->second.substr(0, 80),
          "', which it cannot be");
    ++known;
  });
  check(known == m.size(), "model file: it has ", m.size(), " entries '", kPrefix, "...', the options are ", known);
}

bool is_number(const std::string& s) {
  return !s.empty() && s.size() < 10 && s.find_first_not_of("0123456789") == std::string::npos;
}

// One of several files, as its name says, holds a part of a model.
void check_whole(const std::string& path) {
  std::vector<std::string> stars;
  if (!io::matches("*-of-*.safetensors", std::filesystem::path(path).filename().string(), stars)) return;
  const std::string part = stars[0].substr(stars[0].rfind('-') + 1);
  check(!is_number(part) || !is_number(stars[1]) || std::stoul(stars[1]) == 1, path, ": this is shard ", part, " of ",
        stars[1], "; expected the whole model in one file, as safetensors' save_file writes it");
}

}  // namespace

Metadata describe(const nn::Module& model) {
  if (const auto* gpt = dynamic_cast<const nn::Gpt*>(&model)) return written_options(gpt->options, "gpt");
  const auto* vit = dynamic_cast<const nn::Vit*>(&model);
  check(vit != nullptr, "describe: the model is neither a Gpt nor a Vit");
  return written_options(vit->options, "vit");
}

OpenModelFile open_model_file(const std::string& path) {
  check_whole(path);
  const auto file = std::make_shared<const SafetensorsFile>(path);
  const bool trained = is_checkpoint(file->metadata());
  if (trained) check_checkpoint(*file);
  OpenModelFile opened;
  std::map<std::string, const io::TensorEntry*> places;
  for (const io::TensorEntry& e : file->entries()) {
    if (trained && !e.name.starts_with(kCheckpointWeights)) continue;
    const std::string name = e.name.substr(trained ? kCheckpointWeights.size() : 0);
    opened.state.outline.add(name, outline(e.shape, e.dtype));
    places[name] = &e;
    if (!e.foreign.empty()) opened.foreign[name] = e.foreign;
  }
  opened.state.read = [file, places = std::move(places)](const std::string& name) {
    return file->read(*places.at(name));
  };
  for (const auto& [key, value] : file->metadata()) {
    const std::string name = key.substr(trained && key.starts_with(kCheckpointValue) ? kCheckpointValue.size() : 0);
    if (name.starts_with(kPrefix))
      opened.description.emplace(name, value);
    else if (!trained)
      opened.other.emplace(key, value);
  }
  return opened;
}

ModelFile load_model_file(const std::string& path) {
  OpenModelFile opened = open_model_file(path);
  ModelFile file{{}, std::move(opened.description), std::move(opened.other), std::move(opened.foreign)};
  for (const auto& [name, tensor] : opened.state.outline) file.state.add(name, opened.state.read(name));
  return file;
}

ModelOptions::ModelOptions(const Metadata& description) {
  const auto kind = description.find(kKind);
  check(kind != description.end(), "model file: it does not say what model it holds (no entry '", kKind, "')");
  gpt_ = kind->second == "gpt";
  check(gpt_ || kind->second == "vit", "model file: the model is a '", kind->second.substr(0, 80),
        "', expected gpt or vit");
  if (gpt_)
    read_options(description, gpt_options_);
  else
    read_options(description, vit_options_);
}

void ModelOptions::check_size(const TensorMap& state) const {
  int64_t held = 0;
  for (const auto& [name, tensor] : state) held += tensor.numel();
  const auto mul = [](int64_t a, int64_t b) { return checked_mul(a, b, "model file: size"); };
  const auto add = [](int64_t a, int64_t b) { return checked_add(a, b, "model file: size"); };
  const nn::TransformerOptions t = transformer().complete();
  const int64_t block = mul(t.width, add(mul(4, mul(t.heads, t.head_width)), mul(2, t.mlp_width)));
  const int64_t positions = t.positions == nn::Positions::learned ? gpt_options_.context : 0;
  int64_t rows = gpt_ ? add(gpt_options_.vocab, positions) : vit_options_.classes;
  if (!gpt_) {
    const nn::VitOptions& v = vit_options_;
    check(v.image > 0 && v.patch > 0 && v.channels > 0, "model file: images of ", v.image, " x ", v.image, " x ",
          v.channels, " in patches of ", v.patch, " are not possible");
    const int64_t side = v.image / v.patch;
    rows = add(rows, add(mul(side, side), mul(mul(v.patch, v.patch), v.channels)));
  }
  const int64_t claimed = add(mul(t.depth, block), mul(t.width, rows));
  // Compressed storage of the smallest stream holds half of it.
  check(claimed / 4 <= held, "model file: a model of these options has about ", claimed, " parameters, the file holds ",
        held);
}

std::unique_ptr<nn::Module> ModelOptions::build() const {
  std::unique_ptr<nn::Module> model;
  if (gpt_)
    model = std::make_unique<nn::Gpt>(gpt_options_);
  else
    model = std::make_unique<nn::Vit>(vit_options_);
  model->to(DType::f64);
  model->eval();
  return model;
}

Metadata ModelOptions::description() const {
  const auto completed = [](auto options, const char* kind) {
    options.transformer = options.transformer.complete();
    options.transformer.causal = options.transformer.causal || std::is_same_v<decltype(options), nn::GptOptions>;
    return written_options(options, kind);
  };
  return gpt_ ? completed(gpt_options_, "gpt") : completed(vit_options_, "vit");
}

void check_pre_norm(const nn::Arrangement& residual) {
  check(residual == nn::kPreNorm, "the model's residual connections are ", residual.name,
        ", expected pre_norm, of which alone it is shown that the forms are one function");
}

nn::StreamForm stored_form(const ModelOptions& options) {
  const nn::TransformerOptions& t = options.transformer();
  const bool raw = t.storage == nn::StreamStorage::raw && t.stream != nn::StreamForm::none;
  return raw ? nn::StreamForm::layer_norm : t.stream;
}

Tensor ModelOptions::inputs(int64_t rows, uint64_t seed) const {
  Generator generator{seed, 0};
  if (gpt_) {
    const int64_t vocab = gpt_options_.vocab, context = gpt_options_.context;
    check(vocab > 0 && context > 0 && context <= kLongestContext, "model file: a vocabulary of ", vocab,
          " and a context of ", context, " cannot be shown, expected 1 to ", kLongestContext, " positions");
    rows = std::max(rows, ceil_div(vocab, context));
    const Tensor every = randperm(vocab, kCpu, generator),
                 more = randint(0, vocab, {checked_mul(rows, context, "model file: inputs") - vocab}, kCpu, generator);
    return reshape(cat({every, more}, 0), {rows, context});
  }
  const int64_t side = vit_options_.image;
  return randn({rows, side, side, vit_options_.channels}, {DType::f64}, generator);
}

}  // namespace isonorm::training
