#include "hub/family.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "streams/layout.h"

namespace isonorm::hub {
namespace {

constexpr const char* kPostLn = "its norms stand on the residual stream (Post-LN), so there is no exact form";
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

// A row for each stream.
std::vector<const Family*> families_of(const Config& config) {
  const std::string type = config.word("model_type");
  for (const Known& k : kNotConvertible)
    check(k.type != type, "config.json: a model of type '", type, "' is not converted: ", k.why);
  std::vector<const Family*> found;
  std::vector<std::string_view> all;
  for (std::span<const Family> rows : {text_families(), other_families()})
    for (const Family& f : rows) {
      if (f.type == type) found.push_back(&f);
      if (all.empty() || all.back() != f.type) all.push_back(f.type);
    }
  check(!found.empty(), "config.json: \"model_type\" is ", Shown{type}, ", known are ", listed(all),
        "; describe another one by --spec (docs/conversion.md)");
  return found;
}

// The object that is about a stream. CLIP takes "text_config_dict", where it is there, in place of "text_config"
// (configuration_clip.py); folders from before 2023 have both.
Config part_of(const Config& config, std::string_view key) {
  const std::string before = text(key, "_dict");
  return config.part(config.text_of(before).empty() ? key : before);
}

class Describer {
 public:
  Describer(const Family& family, const Folder& folder)
      : family_(family),
        folder_(folder),
        config_(family.config.empty() ? folder.config : part_of(folder.config, family.config)),
        tensors_(folder.names()),
        said_(converted(folder.config)) {
    for (const Family::Refused& r : family.refused) {
      if (r.value == "true" || r.value == "false") config_.flag(r.key, false);  // throws where it is neither
      check(config_.text_of(r.key) != r.value, "config.json: \"", r.key, "\" is ",
            r.value.empty() ? "not there" : r.value, ": ", r.why);
    }
    for (const char* key : {"quantization_config", "transformers_weights"})
      check(folder.config.text_of(key).empty(), "config.json: \"", key,
            "\" is there: the weights are not those of model.safetensors as they are");
    const auto fits = [&](std::string_view stem) { return has(text(stem, family.writers.front().pattern)); };
    const auto stem = std::ranges::find_if(family.stems, fits);
    check(stem != family.stems.end(), "a model of type '", family.type, "' has a tensor '", family.stems.front(),
          family.writers.front().pattern, "', and here is none");
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
            check(!streams::names_tensor(pattern, t) || (!said_.form.empty() && t.ends_with(".bias")),
                  "the program has no place for '", t, "' by config.json, and would pass over it");
    for (const Family::Reader& r : family_.readers)
      if (is_so(r.when))
        for (std::string_view layer : r.layers) read(in(layer), r.norm, r.dim);
    read_last();
    for (std::string_view name : family_.off_stream) spec_["not_on_stream"].push_back(in(name));
    for (std::string_view name : family_.beside) spec_["not_on_stream"].push_back(name);
    if (!family_.entry.empty()) spec_["recentre"] = in(family_.entry);
    return spec_;
  }

 private:
  std::string in(std::string_view name) const { return text(stem_, name); }
  // A tensor of that name, or the weight of a layer.
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

  // What one layer has, all have, and there are as many as config.json says.
  void check_layers() const {
    const int64_t depth = config_.integer(family_.depth);
    std::map<std::string, std::set<std::string>> layers;  // of names with a * in place of their number
    const std::string_view first = family_.readers.front().norm;
    const std::string before = in(first.substr(0, first.find('*')));
    for (const std::string& t : tensors_) {
      if (!t.starts_with(before)) continue;
      const size_t dot = std::min(t.find('.', before.size()), t.size());
      layers[before + '*' + t.substr(dot)].insert(t.substr(before.size(), dot - before.size()));
    }
    for (const auto& [name, numbers] : layers) {
      check(static_cast<int64_t>(numbers.size()) == depth, "config.json: \"", family_.depth, "\" is ", depth, ", and '",
            name, "' is there ", numbers.size(), " times");
      for (int64_t i = 0; i < depth; ++i)
        check(numbers.contains(std::to_string(i)), "of '", name, "' number ", i, " is missing");
    }
  }

  // What config.json says of a converted norm is what isonorm_torch.py runs.
  void check_said(const std::string& norm, const json& says, double eps) const {
    const auto there = [&](const char* leaf) { return std::ranges::find(tensors_, norm + leaf) != tensors_.end(); };
    json is{{"eps", eps}};
    if (const int64_t width = config_.integer(family_.width); width != said_.width) is["width"] = width;
    if (there(".weight")) is["gain"] = family_.plus_one ? "1+w" : "w";
    if (there(".bias")) is["bias"] = "b";
    bool same = says.size() == is.size();  // in whatever order
    for (const auto& [key, value] : is.items()) same = same && says.value(key, json()) == value;
    check(same, "config.json: \"isonorm\" says of the norm '", norm, "' ", Shown{dump(says)}, ", it is ", dump(is));
  }

  // behind_table: a table's rows go through it, and conversion leaves it out.
  void norm(std::string_view name, bool behind_table = false) {
    const double eps = family_.eps.empty() ? family_.eps_otherwise : config_.number(family_.eps, family_.eps_otherwise);
    const auto is_it = [&](const auto& norm) { return streams::names_tensor(in(name), norm.first + ".weight"); };
    const auto norm = std::ranges::find_if(said_.norms, is_it);
    check(said_.form.empty() || (behind_table ? said_.names("identity", in(name)) : norm != said_.norms.end()),
          "config.json does not say that '", in(name), "' was converted");
    const bool plain = said_.form.empty() ? family_.plain : behind_table || !norm->second.contains("gain");
    check(plain != has(text(in(name), ".weight")), "a norm '", in(name), "' of a model of type '", family_.type,
          plain ? "' has no gain, and here is one" : "' has a gain, and here is none");
    for (const auto& [converted, says] : said_.norms | std::views::filter(is_it)) check_said(converted, says, eps);
    json& said = spec_["norms"][in(name)];
    if (family_.plus_one)
      said = {{"eps", shortest(eps)}, {"gain", "1+w"}};
    else
      said = shortest(eps);
  }

  void write(const std::string& pattern, const Family::Writer& w) {
    json& said = spec_["writers"][needed(pattern)] = w.dim;
    if (!w.norm.empty()) norm(w.norm, true), said = {{"dim", w.dim}, {"norm", in(w.norm)}};
    if (w.scale.empty()) return;
    const std::string scale = in(w.scale);
    spec_["scales"][pattern] = said_.form.empty() ? needed(scale) : scale;  // a conversion folds it
  }

  void read(const std::string& layer, std::string_view through, int dim, int64_t parts = 1) {
    norm(through);
    json& said = spec_["readers"][needed(layer)] = {{"dim", dim}, {"norm", in(through)}};
    if (parts > 1) said["parts"] = parts;
  }

  // The last norm's rows go to heads; or to the table, as one; or, of a model without a head, out.
  void read_last() {
    const std::string architecture = folder_.config.architecture();
    const auto in_row = [&](const auto& names) { return std::ranges::find(names, architecture) != names.end(); };
    if (in_row(family_.bodies)) {
      if (family_.plain) return;
      return norm(family_.last), spec_["kept"].push_back(in(family_.last));
    }
    norm(family_.last);
    check(in_row(family_.models), "config.json: the architecture is ", Shown{architecture}, ", of type '", family_.type,
          "' those with a head that is known are ", listed(family_.models), ", without one ", listed(family_.bodies),
          "; describe another one by --spec");
    bool apart = false;
    for (std::string_view head : family_.heads)
      if (const std::string name(head); has(name)) read(name, family_.last, 1, family_.parts), apart = true;
    const std::string table = in(family_.writers.front().pattern), head = text(family_.heads.front(), ".weight");
    const bool tied = !family_.apart && config_.flag("tie_word_embeddings", family_.tied) && table.ends_with(".weight");
    if (apart)
      return check(!tied || same(table, head), "config.json: by \"tie_word_embeddings\" '", head, "' is '", table,
                   "', and the numbers of the two are not the same");
    check(tied, "config.json: \"tie_word_embeddings\" is false, and there is no '", head, "'");
    spec_["tied"][table] = {{"head", head}, {"norm", in(family_.last)}};
  }

  bool same(const std::string& a, const std::string& b) const {
    const Tensor x = folder_.state.read(a), y = folder_.state.read(b);
    return x.dtype() == y.dtype() && x.shape() == y.shape() && visit_all(x.dtype(), [&]<class T>() {
             return std::equal(x.data<T>(), x.data<T>() + x.numel(), y.data<T>());  // 0 is -0, too
           });
  }

  const Family& family_;
  const Folder& folder_;
  const Config config_;  // of this stream
  const std::vector<std::string> tensors_;
  const SaidOfConversion said_;
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
