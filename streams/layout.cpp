#include "streams/layout.h"

#include <algorithm>

#include "core/system/name_pattern.h"

namespace isonorm::streams {

namespace {

constexpr size_t kStars = 3, kAlternatives = 64;
constexpr int64_t kParts = 64;
constexpr std::string_view kWeight = ".weight", kBias = ".bias";

// The layer of a tensor; empty if the name does not end with ".weight" or ".bias".
std::string_view layer_of(std::string_view tensor) {
  for (std::string_view end : {kWeight, kBias})
    if (tensor.size() > end.size() && tensor.ends_with(end)) return tensor.substr(0, tensor.size() - end.size());
  return {};
}

struct Met {
  std::vector<std::string> stars;  // the text that each star matched
  bool layer;                      // the pattern matches the tensor's layer, not its name
};

// The match of the pattern with the tensor or its layer; none if it matches neither.
std::optional<Met> meets(const std::string& pattern, const std::string& tensor) {
  Met met{{}, false};
  if (pattern == tensor || names::matches(pattern, tensor, met.stars)) return met;
  const std::string_view layer = layer_of(tensor);
  met = {{}, true};
  if (!layer.empty() && (pattern == layer || names::matches(pattern, layer, met.stars))) return met;
  return {};
}

}  // namespace

std::vector<std::string> alternatives(const std::string& pattern) {
  check_name(pattern, "layout");
  std::vector<std::string> all = {""};
  size_t at = 0;
  for (;;) {
    const size_t open = pattern.find('{', at), close = pattern.find('}', std::min(open, pattern.size()));
    const std::string before = pattern.substr(at, close == pattern.npos ? pattern.npos : open - at);
    for (std::string& one : all) one += before;
    if (close == pattern.npos) return all;
    std::vector<std::string> more;
    for (const std::string& one : all)
      for (at = open; at < close;) {
        const size_t end = std::min(pattern.find(',', at + 1), close);
        more.push_back(one + pattern.substr(at + 1, end - at - 1));
        check(more.size() <= kAlternatives, "layout: \"", pattern, "\" expands to more than ", kAlternatives,
              " patterns");
        at = end;
      }
    all = std::move(more), at = close + 1;
  }
}

Layout& Layout::add(const std::string& pattern, Entry entry) {
  check(!pattern.empty(), "layout: a pattern is empty");
  check(entry.dim >= -1, "layout: there is no dimension ", entry.dim, " of \"", pattern, "\"");
  check(names::count_stars(pattern) <= kStars, "layout: \"", pattern, "\" has more than three stars");
  for (const auto& [other, _] : entries_)
    check(other != pattern, "layout: \"", pattern, "\" has two roles on the stream");
  entry.known = true;
  entries_.emplace_back(pattern, std::move(entry));
  return *this;
}

Layout& Layout::writes(const std::string& pattern, int dim, const std::string& norm) {
  return add(pattern, {.role = Role::writer, .dim = dim, .norm = norm});
}
Layout& Layout::reads(const std::string& pattern, const std::string& norm, int dim, const std::string& bias,
                      int64_t parts) {
  check(parts >= 1 && parts <= kParts, "layout: reader \"", pattern, "\" reads ", parts, " rows, expected 1 to ",
        kParts);
  return add(pattern, {.role = Role::reader, .dim = dim, .norm = norm, .bias = bias, .parts = parts});
}
Layout& Layout::other(const std::string& pattern, bool off_stream) { return add(pattern, {.off_stream = off_stream}); }
Layout& Layout::tied(const Tied& t) {
  for (const Tied& other : tied_) check(other.table != t.table, "layout: tied \"", t.table, "\" is there twice");
  tied_.push_back(t);
  if (tied_.back().bias.empty()) tied_.back().bias = bias_beside(t.weight);
  check(!tied_.back().bias.empty(), "layout: tied \"", t.table,
        "\": \"head\" must end with \"weight\", or \"bias\" be given");
  return *this;
}
Layout& Layout::norm(const std::string& pattern, Norm n) {
  check(norms_.emplace(pattern, n).second, "layout: norm \"", pattern, "\" is there twice");
  return *this;
}
Layout& Layout::keep(const std::string& norm) { return kept_.push_back(norm), *this; }
Layout& Layout::scale(const std::string& writer, const std::string& vector) {
  check(!vector.empty(), "layout: the layer scale of \"", writer, "\" has an empty name");
  check(scales_.emplace(writer, vector).second, "layout: \"", writer, "\" has two layer scales");
  return *this;
}
Layout& Layout::reads_embeddings() { return reads_embeddings_ = true, *this; }
Layout& Layout::recentre(const std::string& module) {
  check(!module.empty() && module.find('*') == std::string::npos, "layout: \"recentre\" is \"", module,
        "\", expected a single module");
  return recentred_ = module, *this;
}
Layout& Layout::width(int64_t d) { return width_ = d, *this; }

Layout& Layout::with(const std::string& path, const Layout& of_child) {
  const Layout child = of_child;  // a copy: of_child may be *this
  check(!path.empty(), "layout: the path of a module is empty");
  check(width_ == 0 || child.width_ == 0 || width_ == child.width_, "layout: the width is ", width_, ", but '", path,
        "' has width ", child.width_, "; expected the same");
  const auto in = [&](const std::string& name) { return name.empty() ? name : text(path, '.', name); };
  for (const auto& [pattern, entry] : child.entries_) {
    Entry e = entry;
    e.norm = in(e.norm), e.bias = in(e.bias);
    add(in(pattern), std::move(e));
  }
  for (const auto& [writer, vector] : child.scales_) scale(in(writer), in(vector));
  for (const auto& [name, n] : child.norms_) norm(in(name), n);
  for (const std::string& name : child.kept_) keep(in(name));
  for (const Tied& t : child.tied_) tied({in(t.table), in(t.weight), in(t.bias), in(t.norm)});
  reads_embeddings_ = reads_embeddings_ || child.reads_embeddings_;
  if (!child.recentred_.empty()) recentre(in(child.recentred_));
  if (width_ == 0) width_ = child.width_;
  return *this;
}

std::vector<Layout::Entry> Layout::entries_of(std::span<const std::string> tensors) const {
  std::vector<Entry> found(tensors.size());
  std::vector<const std::string*> by(tensors.size());
  for (const auto& [pattern, entry] : entries_) {
    bool used = false;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto met = meets(pattern, tensors[i]);
      if (!met) continue;
      check(!by[i], "layout: tensor '", tensors[i], "' is \"", by[i] ? *by[i] : "", "\" and \"", pattern, "\" at once");
      by[i] = &pattern, used = true;
      Entry& e = found[i] = entry;
      const bool beside = met->layer && tensors[i].ends_with(kBias);
      if (e.role == Role::reader && beside) {  // the pattern names the reader's layer; its bias is not a reader itself
        const bool own = e.bias.empty() || names::filled(e.bias, met->stars) == tensors[i];
        e = own ? Entry{.known = true, .off_stream = true} : Entry{};
        continue;
      }
      if (e.role == Role::writer && beside && e.dim > 0) e.dim = 0;
      e.norm = names::filled(e.norm, met->stars);
      e.bias = e.bias.empty() ? bias_beside(tensors[i]) : names::filled(e.bias, met->stars);
      check(e.role != Role::reader || !e.bias.empty(), "layout: reader \"", pattern,
            "\" has no \"bias\", and no name to make one from");
    }
    check(used || entry.role == Role::neutral, "layout: no tensor is called \"", pattern, "\"");
  }
  for (const auto& [writer, vector] : scales_) {
    bool used = false;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto met = meets(writer, tensors[i]);
      if (!met) continue;
      used = true;
      const std::string scale = names::filled(vector, met->stars);
      check(found[i].role == Role::writer, "layout: \"", writer, "\" has the layer scale '", scale, "', and '",
            tensors[i], "' is not a writer");
      check(found[i].scale.empty(), "layout: tensor '", tensors[i], "' has two layer scales");
      found[i].scale = scale;
    }
    check(used, "layout: no tensor is called \"", writer, "\"");
  }
  return found;
}

const std::pair<const std::string, Layout::Norm>* Layout::norm_of(const std::string& name) const {
  if (const auto own = norms_.find(name); own != norms_.end()) return &*own;
  const std::pair<const std::string, Norm>* found = nullptr;
  for (const auto& norm : norms_) {
    std::vector<std::string> stars;
    if (!names::matches(norm.first, name, stars)) continue;
    check(!found, "layout: norm '", name, "' is \"", found ? found->first : "", "\" and \"", norm.first, "\" at once");
    found = &norm;
  }
  return found;
}

bool Layout::of_files() const {
  return !recentred_.empty() || std::ranges::any_of(entries_, [](const auto& e) {
    return e.second.parts > 1 || (e.second.role == Role::writer && !e.second.norm.empty());
  });
}

bool Layout::keeps(const std::string& norm) const {
  std::vector<std::string> stars;
  return std::ranges::any_of(kept_, [&](const auto& k) { return k == norm || names::matches(k, norm, stars); });
}

bool names_tensor(const std::string& pattern, const std::string& tensor) {
  return std::ranges::any_of(alternatives(pattern), [&](const auto& one) { return meets(one, tensor).has_value(); });
}

std::string bias_beside(const std::string& weight) {
  constexpr std::string_view kEnd = "weight";
  return weight.ends_with(kEnd) ? weight.substr(0, weight.size() - kEnd.size()) + "bias" : "";
}

}  // namespace isonorm::streams
