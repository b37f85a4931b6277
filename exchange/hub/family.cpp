#include "exchange/hub/family.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "streams/layout.h"

namespace isonorm::hub {
namespace {

constexpr const char* kPostLn = "its norms are on the residual stream (Post-LN), so there is no exact form";
constexpr const char* kRms = "its norms are RMSNorm already";

struct Known {
  std::string_view type, why;
};
const Known kNotConvertible[] = {
    {"albert", kPostLn},  {"bart", kPostLn},   {"bert", kPostLn},     {"deberta", kPostLn}, {"distilbert", kPostLn},
    {"electra", kPostLn}, {"marian", kPostLn}, {"mpnet", kPostLn},    {"roberta", kPostLn}, {"xlm-roberta", kPostLn},
    {"gemma", kRms},      {"gemma2", kRms},    {"gemma3_text", kRms}, {"llama", kRms},      {"mistral", kRms},
    {"mixtral", kRms},    {"olmo2", kRms},     {"phi3", kRms},        {"qwen2", kRms},      {"qwen3", kRms},
    {"t5", kRms}};

std::string listed(const std::vector<std::string_view>& names) {
  std::string all;
  for (std::string_view name : names) all += text(all.empty() ? "" : ", ", name);
  return all.empty() ? "none" : all;
}

// The rows of this family, one for each stream.
std::vector<const Family*> families_of(const Config& config) {
  std::string type = config.word("model_type");
  if (const std::string name = config.word("architecture"); type.empty() && !name.empty()) type = "timm/" + name;
  for (const Known& k : kNotConvertible)
    check(k.type != type, "config.json: a model of type '", type, "' is not converted: ", k.why);
  std::vector<const Family*> found;
  std::vector<std::string_view> all;
  for (std::span<const Family> rows : {text_families(), other_families()})
    for (const Family& f : rows) {
      if (found.empty() ? streams::names_tensor(std::string(f.type), type) : found.front()->type == f.type)
        found.push_back(&f);
      if (all.empty() || all.back() != f.type) all.push_back(f.type);
    }
  check(!found.empty(), "config.json: \"model_type\" is ", Shown{type}, ", known are ", listed(all),
        "; describe another one by --spec (docs/conversion.md)");
  return found;
}

// The part of config.json about the stream. If CLIP has both "text_config_dict" and "text_config", as in folders from
// before 2023, the former counts (configuration_clip.py). In timm, "model_args" override the other entries.
Config config_of(const Family& family, const Config& config) {
  if (!family.config.empty()) {
    const std::string before = text(family.config, "_dict");
    return config.part(config.text_of(before).empty() ? family.config : before);
  }
  if (!family.type.starts_with("timm/") || !config.values().contains("model_args")) return config;
  json values = config.values();
  values.update(config.part("model_args").values());
  return Config(dump(values));
}

class Describer {
 public:
  Describer(const Family& family, const Folder& folder)
      : family_(family),
        folder_(folder),
        config_(config_of(family, folder.config)),
        tensors_(folder.names()),
        record_(conversion_record(folder.config)) {
    for (const Family::Refused& r : family.refused) {
      if (r.value == "true" || r.value == "false") config_.flag(r.key, false);  // throws if it is neither
      const std::string value = config_.text_of(r.key);
      check(value.empty() != r.value.empty() || !streams::names_tensor(std::string(r.value), value), "config.json: \"",
            r.key, "\" is ", value.empty() ? "not there" : value, ": ", r.why);
    }
    for (const Family::Allowed& a : family.allowed) {
      const std::string value = config_.text_of(a.key);
      check(value.empty() || std::ranges::count(a.values, value) > 0, "config.json: \"", a.key, "\" is ", Shown{value},
            ", expected ", listed(a.values), ": ", a.why);
    }
    for (const char* key : {"quantization_config", "transformers_weights"})
      check(folder.config.text_of(key).empty(), "config.json: \"", key,
            "\" is set: the weights are not simply the tensors of model.safetensors");
    const auto fits = [&](std::string_view stem) { return has(text(stem, family.writers.front().pattern)); };
    const auto stem = std::ranges::find_if(family.stems, fits);
    check(stem != family.stems.end(), "there is no tensor '", family.stems.front(), family.writers.front().pattern,
          "', which a model of type '", family.type, "' has");
    stem_ = *stem;
  }

  json spec() {
    spec_["width"] = config_.integer(family_.width);
    for (const char* part : {"norms", "writers", "readers"}) spec_[part] = json::object();
    check_layers();
    for (const Family::Writer& w : family_.writers)
      if (is_so(w.when) && (!w.optional || has(in(w.pattern)))) write(in(w.pattern), w);
    for (const Family::Absent& a : family_.absent)
      if (is_so(a.when))
        for (const std::string& pattern : {std::string(a.pattern), in(a.pattern)})
          for (const std::string& t : tensors_)
            check(!streams::names_tensor(pattern, t) || (!record_.form.empty() && t.ends_with(".bias")),
                  "a model with this config.json has no tensor '", t, "'; its program would ignore it");
    for (const Family::Reader& r : family_.readers)
      if (is_so(r.when))
        for (std::string_view layer : r.layers) read(in(layer), r.norm, r.dim);
    read_last();
    for (std::string_view name : family_.off_stream) spec_["not_on_stream"].push_back(in(name));
    for (std::string_view name : family_.needed) needed(in(name));
    for (std::string_view name : family_.beside) spec_["not_on_stream"].push_back(name);
    if (!family_.entry.empty()) spec_["recentre"] = in(family_.entry);
    return spec_;
  }

 private:
  std::string in(std::string_view name) const { return text(stem_, name); }
  // True if there is a tensor with this name, or a weight of this layer.
  bool has(const std::string& pattern) const {
    return std::ranges::any_of(
        tensors_, [&](const std::string& t) { return !t.ends_with(".bias") && streams::names_tensor(pattern, t); });
  }
  const std::string& needed(const std::string& pattern) const {
    check(has(pattern), "there is no tensor '", pattern, "', which a model of type '", family_.type, "' has");
    return pattern;
  }
  bool is_so(const std::vector<Family::When>& when) const {
    return std::ranges::all_of(when, [&](const auto& w) { return config_.flag(w.key, w.otherwise) == w.is; });
  }

  // Checks that all layers have the same tensors, and that their number is the one in config.json.
  void check_layers() const {
    std::map<std::string, std::set<std::string>> layers;  // names with * for the layer's number -> numbers
    const std::string_view first = family_.readers.front().norm;
    const std::string before = in(first.substr(0, first.find('*')));
    for (const std::string& t : tensors_) {
      if (!t.starts_with(before)) continue;
      const size_t dot = std::min(t.find('.', before.size()), t.size());
      layers[before + '*' + t.substr(dot)].insert(t.substr(before.size(), dot - before.size()));
    }
    int64_t depth = 0;
    for (const auto& [_, numbers] : layers) depth = std::max(depth, static_cast<int64_t>(numbers.size()));
    if (!family_.depth.empty()) depth = config_.integer(family_.depth);
    for (const auto& [name, numbers] : layers) {
      check(static_cast<int64_t>(numbers.size()) == depth,
            family_.depth.empty() ? "the most layers" : text("config.json: \"", family_.depth, "\""), " is ", depth,
            ", and '", name, "' occurs ", numbers.size(), " times");
      for (int64_t i = 0; i < depth; ++i) check(numbers.contains(text(i)), "'", name, "': number ", i, " is missing");
    }
  }

  // Checks the record of a converted norm in config.json, which isonorm_torch.py uses.
  void check_record(const std::string& norm, const json& record, double eps) const {
    const auto there = [&](const char* leaf) { return std::ranges::find(tensors_, norm + leaf) != tensors_.end(); };
    json is{{"eps", eps}};
    if (const int64_t width = config_.integer(family_.width); width != record_.width) is["width"] = width;
    if (there(".weight")) is["gain"] = family_.plus_one ? "1+w" : "w";
    if (there(".bias")) is["bias"] = "b";
    bool same = record.size() == is.size();  // in any order
    for (const auto& [key, value] : is.items()) same = same && record.value(key, json()) == value;
    check(same, "config.json: \"isonorm\" describes the norm '", norm, "' as ", Shown{dump(record)}, ", it is ",
          dump(is));
  }

  // behind_table: the norm is between a table and the stream, and the conversion removes it.
  void norm(std::string_view name, bool behind_table = false) {
    const double eps = family_.eps.empty() ? family_.eps_otherwise : config_.number(family_.eps, family_.eps_otherwise);
    const auto is_it = [&](const auto& norm) { return streams::names_tensor(in(name), norm.first + ".weight"); };
    const auto norm = std::ranges::find_if(record_.norms, is_it);
    check(record_.form.empty() || (behind_table ? record_.names("identity", in(name)) : norm != record_.norms.end()),
          "config.json does not say that '", in(name), "' was converted");
    const bool plain = record_.form.empty() ? family_.plain : behind_table || !norm->second.contains("gain");
    check(plain != has(text(in(name), ".weight")), "a norm '", in(name), "' of a model of type '", family_.type,
          plain ? "' has no gain, and the folder has one" : "' has a gain, and the folder has none");
    for (const auto& of : record_.norms)
      if (is_it(of)) check_record(of.first, of.second, eps);
    json& entry = spec_["norms"][in(name)] = shortest(eps);
    if (family_.plus_one) entry = {{"eps", shortest(eps)}, {"gain", "1+w"}};
  }

  void write(const std::string& pattern, const Family::Writer& w) {
    json& entry = spec_["writers"][needed(pattern)] = w.dim;
    if (!w.norm.empty()) norm(w.norm, true), entry = {{"dim", w.dim}, {"norm", in(w.norm)}};
    const std::string scale = in(w.scale);
    const bool scaled = record_.form.empty() ? has(scale) : !record_.list("scales").empty();
    if (w.scale.empty() || (w.bare && !scaled)) return;
    spec_["scales"][pattern] = record_.form.empty() ? needed(scale) : scale;  // a conversion folds it into the writer
  }

  void read(const std::string& layer, std::string_view through, int dim, int64_t parts = 1) {
    norm(through);
    json& entry = spec_["readers"][needed(layer)] = {{"dim", dim}, {"norm", in(through)}};
    if (parts > 1) entry["parts"] = parts;
  }

  // The readers of the last norm: heads, or the table of a tied head. In a model without a head, the norm's rows are
  // the output.
  void read_last() {
    const std::string architecture = folder_.config.architecture(), pooled = in(family_.pooled);
    const auto in_row = [&](const auto& names) { return std::ranges::find(names, architecture) != names.end(); };
    const bool pools = !family_.pooled.empty() && (has(pooled + ".weight") || record_.norms.contains(pooled));
    const std::string_view last = pools ? family_.pooled : family_.last;
    const bool head = std::ranges::any_of(family_.heads, [&](std::string_view name) { return has(std::string(name)); });
    if (in_row(family_.bodies) && !(head && in_row(family_.models))) {
      if (family_.plain) return;
      return norm(last), spec_["kept"].push_back(in(last));
    }
    norm(last);
    check(in_row(family_.models), "config.json: the architecture is ", Shown{architecture}, ", of type '", family_.type,
          "' known are ", listed(family_.models), " with a head, ", listed(family_.bodies),
          " without; describe another one by --spec");
    for (std::string_view one : family_.heads)
      if (const std::string name(one); has(name)) read(name, last, 1, family_.parts);
    const std::string table = in(family_.writers.front().pattern), weight = text(family_.heads.front(), ".weight");
    const bool tied = !family_.apart && config_.flag("tie_word_embeddings", family_.tied) && table.ends_with(".weight");
    if (head)
      return check(!tied || same(table, weight), "config.json: \"tie_word_embeddings\" says that '", weight, "' is '",
                   table, "', but their numbers differ");
    check(tied, "config.json: \"tie_word_embeddings\" is false, and there is no '", weight, "'");
    spec_["tied"][table] = {{"head", weight}, {"norm", in(last)}};
  }

  bool same(const std::string& a, const std::string& b) const {
    const Tensor x = folder_.state.read(a), y = folder_.state.read(b);
    return x.dtype() == y.dtype() && x.shape() == y.shape() && visit_all(x.dtype(), [&]<class T>() {
             return std::equal(x.data<T>(), x.data<T>() + x.numel(), y.data<T>());  // counts 0 and -0 as equal
           });
  }

  const Family& family_;
  const Folder& folder_;
  const Config config_;  // the part about this stream
  const std::vector<std::string> tensors_;
  const ConversionRecord record_;
  std::string_view stem_;
  json spec_;
};

}  // namespace

std::string describe(const Folder& folder) {
  json spec;
  for (const Family* f : families_of(folder.config))
    (f->stream.empty() ? spec : spec["streams"][f->stream]) = Describer(*f, folder).spec();
  return dump(spec, 1) + '\n';
}

}  // namespace isonorm::hub
