#include "hub/family.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/error.h"
#include "core/printed.h"
#include "core/memory/bytes.h"
#include "core/system/foreign_text.h"
#include "streams/layout.h"

namespace isonorm::hub {
namespace {

constexpr const char* kPostLn = "its norms stand on the residual stream (Post-LN), so there is no exact form";
constexpr const char* kRms = "its norms are RMSNorm already";
constexpr const char* kBegins =
    "its stream begins behind a norm or an activation, whose mean no weight removes: it would have to be recentred "
    "once";

struct Known {
  std::string_view type, why;
};
const Known kNotConvertible[] = {{"albert", kPostLn},
                                 {"bart", kPostLn},
                                 {"bert", kPostLn},
                                 {"deberta", kPostLn},
                                 {"distilbert", kPostLn},
                                 {"electra", kPostLn},
                                 {"marian", kPostLn},
                                 {"mpnet", kPostLn},
                                 {"roberta", kPostLn},
                                 {"xlm-roberta", kPostLn},
                                 {"gemma", kRms},
                                 {"gemma2", kRms},
                                 {"gemma3_text", kRms},
                                 {"llama", kRms},
                                 {"mistral", kRms},
                                 {"mixtral", kRms},
                                 {"olmo2", kRms},
                                 {"phi3", kRms},
                                 {"qwen2", kRms},
                                 {"qwen3", kRms},
                                 {"t5", kRms},
                                 {"bloom", kBegins},
                                 {"clip", kBegins},
                                 {"whisper", kBegins},
                                 {"clip_vision_model", kBegins},
                                 {"hubert", kBegins},
                                 {"wav2vec2", kBegins}};

std::string listed(const std::vector<std::string_view>& names) {
  std::string all;
  for (std::string_view name : names) all += text(all.empty() ? "" : ", ", name);
  return all.empty() ? "none" : all;
}

const Family& family_of(const Config& config) {
  const std::string type = config.word("model_type");
  for (const Known& k : kNotConvertible)
    check(k.type != type, "config.json: a model of type '", type, "' is not converted: ", k.why);
  std::string all;
  for (const Family& f : families()) {
    if (f.type == type) return f;
    all += text(all.empty() ? "" : ", ", f.type);
  }
  check(false, "config.json: \"model_type\" is ", Shown{type}, ", known are ", all,
        "; describe another one by --spec (docs/conversion.md)");
  return families().front();
}

class Describer {
 public:
  Describer(const Family& family, const Folder& folder)
      : family_(family),
        folder_(folder),
        config_(folder.config),
        tensors_(folder.names()),
        converted_(!folder.config.text_of("isonorm").empty()) {
    for (const Family::Refused& r : family.refused) {
      if (r.value == "true" || r.value == "false") config_.flag(r.key, false);  // throws where it is neither
      check(config_.text_of(r.key) != r.value, "config.json: \"", r.key, "\" is ", r.value, ": ", r.why);
    }
    for (const char* key : {"quantization_config", "transformers_weights"})
      check(config_.text_of(key).empty(), "config.json: \"", key,
            "\" is there: the weights are not those of model.safetensors as they are");
    const auto fits = [&](std::string_view stem) { return has(text(stem, family.writers.front().pattern)); };
    const auto stem = std::ranges::find_if(family.stems, fits);
    check(stem != family.stems.end(), "a model of type '", family.type, "' has a tensor '", family.stems.front(),
          family.writers.front().pattern, "', and here is none");
    stem_ = *stem;
  }

  std::string json_text() {
    spec_["width"] = config_.integer(family_.width);
    for (const char* part : {"norms", "writers", "readers"}) spec_[part] = json::object();
    check_layers();
    for (const Family::Writer& w : family_.writers)
      if (!w.optional || has(in(w.pattern))) spec_["writers"][needed(in(w.pattern))] = w.dim;
    for (const Family::Absent& a : family_.absent)
      if (!converted_ && is_so(a.when))
        for (const std::string& pattern : {std::string(a.pattern), in(a.pattern)})
          for (const std::string& t : tensors_)
            check(!streams::names_tensor(pattern, t), "the program has no place for '", t,
                  "' by config.json, and would pass over it");
    for (const Family::Reader& r : family_.readers)
      if (is_so(r.when))
        for (std::string_view layer : r.layers) read(in(layer), r.norm, r.dim);
    read_last();
    for (std::string_view name : family_.off_stream) spec_["not_on_stream"].push_back(in(name));
    return dump(spec_, 1) + '\n';
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
    std::map<std::string, std::set<std::string>> layers;  // of names with a * in place of their first number
    for (const std::string& t : tensors_) {
      for (size_t dot = t.find('.'); dot != t.npos; dot = t.find('.', dot + 1)) {
        const std::string part = t.substr(dot + 1, t.find('.', dot + 1) - dot - 1);
        if (part.empty() || part.find_first_not_of("0123456789") != part.npos) continue;
        layers[t.substr(0, dot + 1) + '*' + t.substr(dot + 1 + part.size())].insert(part);
        break;
      }
      if (t[0] >= '0' && t[0] <= '9') layers['*' + t.substr(t.find('.'))].insert(t.substr(0, t.find('.')));
    }
    for (const auto& [name, numbers] : layers) {
      check(static_cast<int64_t>(numbers.size()) == depth, "config.json: \"", family_.depth, "\" is ", depth, ", and '",
            name, "' is there ", numbers.size(), " times");
      for (int64_t i = 0; i < depth; ++i)
        check(numbers.contains(std::to_string(i)), "of '", name, "' number ", i, " is missing");
    }
  }

  void norm(std::string_view name) {
    const double eps = family_.eps.empty() ? family_.eps_otherwise : config_.number(family_.eps, family_.eps_otherwise);
    check(converted_ || family_.plain != has(text(in(name), ".weight")), "a norm '", in(name), "' of a model of type '",
          family_.type, family_.plain ? "' has no gain, and here is one" : "' has a gain, and here is none");
    json& said = spec_["norms"][in(name)];
    if (family_.plus_one)
      said = {{"eps", shortest(eps)}, {"gain", "1+w"}};
    else
      said = shortest(eps);
  }

  void read(const std::string& layer, std::string_view through, int dim) {
    norm(through);
    spec_["readers"][needed(layer)] = {{"dim", dim}, {"norm", in(through)}};
  }

  // The last norm's rows go to heads; or to the table, as one; or, of a model without a head, out.
  void read_last() {
    const std::string architecture = config_.architecture();
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
      if (const std::string name(head); has(name)) read(name, family_.last, 1), apart = true;
    const std::string table = in(family_.writers.front().pattern), head = text(family_.heads.front(), ".weight");
    const bool tied = config_.flag("tie_word_embeddings", family_.tied) && table.ends_with(".weight");
    if (apart)
      return check(!tied || same(table, head), "config.json: by \"tie_word_embeddings\" '", head, "' is '", table,
                   "', and the numbers of the two are not the same");
    check(tied, "config.json: \"tie_word_embeddings\" is false, and there is no '", head, "'");
    spec_["tied"][table] = {{"head", head}, {"norm", in(family_.last)}};
  }

  bool same(const std::string& a, const std::string& b) const {
    const Tensor x = folder_.state.read(a), y = folder_.state.read(b);
    return x.dtype() == y.dtype() && x.shape() == y.shape() &&
           std::memcmp(bytes_of(x), bytes_of(y), static_cast<size_t>(byte_size(x))) == 0;
  }

  const Family& family_;
  const Folder& folder_;
  const Config& config_;
  const std::vector<std::string> tensors_;
  const bool converted_;  // norms' gains and biases may be its readers'
  std::string_view stem_;
  json spec_;
};

}  // namespace

std::string describe(const Folder& folder) { return Describer(family_of(folder.config), folder).json_text(); }

}  // namespace isonorm::hub
