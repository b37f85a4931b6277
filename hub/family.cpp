#include "hub/family.h"

#include <algorithm>
#include <cstring>

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
      : family_(family), folder_(folder), config_(folder.config), tensors_(folder.names()) {
    for (const Family::Refused& r : family.refused)
      check(config_.text_of(r.key) != r.value, "config.json: \"", r.key, "\" is ", r.value, ": ", r.why);
    const auto fits = [&](std::string_view stem) { return has(text(stem, family.writers.front().pattern)); };
    const auto stem = std::ranges::find_if(family.stems, fits);
    check(stem != family.stems.end(), "a model of type '", family.type, "' has a tensor '", family.stems.front(),
          family.writers.front().pattern, "', and here is none");
    stem_ = *stem;
  }

  std::string json_text() {
    spec_["width"] = config_.integer(family_.width);
    for (const char* part : {"norms", "writers", "readers"}) spec_[part] = json::object();
    for (const Family::Writer& w : family_.writers) {
      const std::string pattern = in(w.pattern);
      if (!has(pattern)) continue;
      spec_["writers"][pattern] = w.dim;
      if (!w.scale.empty() && has(in(w.scale))) spec_["scales"][pattern] = in(w.scale);
    }
    for (const Family::Reader& r : family_.readers)
      if (std::ranges::all_of(r.when, [&](const auto& w) { return config_.flag(w.key, w.otherwise) == w.is; }))
        for (std::string_view layer : r.layers) read(in(layer), r.norm, r.dim);
    read_last();
    for (std::string_view name : family_.off_stream) spec_["not_on_stream"].push_back(in(name));
    return dump(spec_, 1) + '\n';
  }

 private:
  std::string in(std::string_view name) const { return text(stem_, name); }
  bool has(const std::string& pattern) const {
    return std::ranges::any_of(tensors_, [&](const std::string& t) { return streams::names_tensor(pattern, t); });
  }

  void norm(std::string_view name) {
    const double eps = config_.number(family_.eps, family_.eps_otherwise);
    check(family_.plain || has(text(in(name), ".weight")), "by config.json there is a norm '", in(name),
          "', and no tensor is its gain");
    json& said = spec_["norms"][in(name)];
    if (family_.plus_one)
      said = {{"eps", shortest(eps)}, {"gain", "1+w"}};
    else
      said = shortest(eps);
  }

  void read(const std::string& layer, std::string_view through, int dim) {
    if (!has(layer)) return;
    norm(through);
    spec_["readers"][layer] = {{"dim", dim}, {"norm", in(through)}};
  }

  // The last norm's rows go to heads; or to the table, as one; or, of a model without a head, out.
  void read_last() {
    norm(family_.last);
    const std::string architecture = config_.architecture();
    const auto in_row = [&](const auto& names) { return std::ranges::find(names, architecture) != names.end(); };
    if (in_row(family_.bodies)) return spec_["kept"].push_back(in(family_.last));
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
  std::string_view stem_;
  json spec_;
};

}  // namespace

std::string describe(const Folder& folder) { return Describer(family_of(folder.config), folder).json_text(); }

}  // namespace isonorm::hub
