#include "streams/layout.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/printed.h"
#include "core/system/name_pattern.h"
#include "io/json.h"

namespace isonorm::streams {

using io::JsonValue;

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

constexpr int64_t kWidthLimit = int64_t{1} << 32;

// "a.{b,c}.d" becomes "a.b.d" and "a.c.d".
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
        check(more.size() <= kAlternatives, "layout: \"", pattern, "\" stands for more than ", kAlternatives,
              " patterns");
        at = end;
      }
    all = std::move(more), at = close + 1;
  }
}

class LayoutReader {
 public:
  Layout take() {
    check(layout_.width() > 0 && layout_.width() <= kWidthLimit, "layout: \"width\" is ", layout_.width(),
          ", expected the Pre-LN model's");
    return std::move(layout_);
  }

  using Key = const std::string&;

  JsonValue section(Key key) {
    check(seen_.insert(key).second, "layout: \"", key, "\" is there twice");
    if (key == "width") return {.integer = [this](int64_t d) { layout_.width(d); }};
    if (key == "norms") return {.member = [this](Key pattern) { return norm(pattern); }};
    if (key == "writers") return {.member = [this](Key pattern) { return writer(pattern); }};
    if (key == "readers") return {.member = [this](Key pattern) { return reader(pattern); }};
    if (key == "recentre") return {.string = [this](Key module) { layout_.recentre(module); }};
    if (key == "tied") return {.member = [this](Key table) { return tied(table); }};
    if (key == "scales")
      return {.member = [this](Key writer) -> JsonValue {
        return {.string = [this, writer](Key vector) {
          for (const std::string& one : alternatives(writer)) layout_.scale(one, vector);
        }};
      }};
    check(key == "others" || key == "not_on_stream" || key == "kept", "layout: there is no entry \"", key,
          "\", expected width, norms, kept, writers, readers, tied, scales, recentre, others or not_on_stream");
    return {.element = [this, key]() -> JsonValue {
      return {.string = [this, key](Key pattern) {
        for (const std::string& one : alternatives(pattern))
          key == "kept" ? layout_.keep(one) : layout_.other(one, key == "not_on_stream");
      }};
    }};
  }

 private:
  JsonValue norm(Key pattern) {
    said_ = {.eps = 0};
    const auto end = [this, pattern] {
      check(said_.eps != 0, "layout: norm \"", pattern, "\" has no \"eps\", or one of 0");
      for (const std::string& one : alternatives(pattern)) layout_.norm(one, said_);
    };
    const JsonValue eps_value{.string = [this, pattern](Key word) { said_.eps = eps(pattern, word); },
                              .number = [this](double x) { said_.eps = x; }};
    return {.string = [eps_value, end](Key word) { eps_value.string(word), end(); },
            .number = [eps_value, end](double x) { eps_value.number(x), end(); },
            .member = [this, pattern, eps_value](Key field) -> JsonValue {
              if (field == "eps") return eps_value;
              check(field == "gain", "layout: norm \"", pattern, "\" has an entry \"", field,
                    "\", expected eps or gain");
              return {.string = [this, pattern](Key gain) {
                check(gain == "w" || gain == "1+w", "layout: the gain of norm \"", pattern, "\" is \"", gain,
                      "\", expected \"w\" or \"1+w\"");
                said_.plus_one = gain == "1+w";
              }};
            },
            .end = end};
  }

  static double eps(Key norm, Key word) {
    double value = 0;
    check(read_number(word, value), "layout: the eps of norm \"", norm, "\" is \"", word,
          "\", expected a number such as 1e-5");
    return value;
  }

  static int dim(int64_t d) {
    check(d < kMaxRank, "layout: there is no dimension ", d);
    return static_cast<int>(d);
  }

  static JsonValue into(std::string& place) {
    return {.string = [&place](Key word) { place = word; }};
  }

  JsonValue writer(Key pattern) {
    axis_ = -1, norm_.clear();
    const auto end = [this, pattern] {
      check(axis_ >= 0, "layout: writer \"", pattern, "\" has no \"dim\"");
      for (const std::string& one : alternatives(pattern)) layout_.writes(one, axis_, norm_);
    };
    return {.integer = [this, end](int64_t d) { axis_ = dim(d), end(); },
            .member = [this, pattern](Key field) -> JsonValue {
              if (field == "dim") return {.integer = [this](int64_t d) { axis_ = dim(d); }};
              check(field == "norm", "layout: writer \"", pattern, "\" has an entry \"", field,
                    "\", expected dim or norm");
              return into(norm_);
            },
            .end = end};
  }

  JsonValue reader(Key pattern) {
    axis_ = -1, parts_ = 1, norm_.clear(), bias_.clear();
    return {.member = [this, pattern](Key field) -> JsonValue {
              if (field == "dim") return {.integer = [this](int64_t d) { axis_ = dim(d); }};
              if (field == "parts") return {.integer = [this](int64_t n) { parts_ = n; }};
              check(field == "norm" || field == "bias", "layout: reader \"", pattern, "\" has an entry \"", field,
                    "\", expected dim, norm, bias or parts");
              return into(field == "norm" ? norm_ : bias_);
            },
            .end =
                [this, pattern] {
                  check(axis_ >= 0, "layout: reader \"", pattern, "\" has no \"dim\"");
                  for (const std::string& one : alternatives(pattern)) layout_.reads(one, norm_, axis_, bias_, parts_);
                }};
  }

  JsonValue tied(Key table) {
    tied_ = {.table = table, .weight = {}, .bias = {}, .norm = {}};
    return {.member = [this](Key field) -> JsonValue {
              if (field == "head") return into(tied_.weight);
              check(field == "norm" || field == "bias", "layout: tied \"", tied_.table, "\" has an entry \"", field,
                    "\", expected head, norm or bias");
              return into(field == "norm" ? tied_.norm : tied_.bias);
            },
            .end = [this] { layout_.tied(tied_); }};
  }

  Layout layout_;
  std::set<std::string> seen_;
  Layout::Norm said_;  // the norm that is being read
  int axis_ = -1;      // of the writer or reader that is being read
  int64_t parts_ = 1;
  std::string norm_, bias_;
  Layout::Tied tied_;
};

}  // namespace

Layout Layout::from_json(std::string_view json) {
  auto streams = streams_from_json(json);
  check(streams.front().first.empty(), "layout: it describes several streams, expected one");
  return std::move(streams.front().second);
}

std::vector<std::pair<std::string, Layout>> Layout::streams_from_json(std::string_view json) {
  LayoutReader one;
  std::map<std::string, LayoutReader> several;
  std::string beside;
  io::read_json(json, {.member = [&](const std::string& key) -> JsonValue {
                  if (key != "streams") return beside = key, one.section(key);
                  return {.member = [&](const std::string& name) -> JsonValue {
                    check(!name.empty() && !several.contains(name), "layout: a stream is called \"", name,
                          "\", expected names that differ");
                    return {.member = [&reader = several[name]](const std::string& k) { return reader.section(k); }};
                  }};
                }});
  std::vector<std::pair<std::string, Layout>> streams;
  for (auto& [name, reader] : several) streams.emplace_back(name, reader.take());
  if (several.empty()) streams.emplace_back("", one.take());
  check(several.empty() || beside.empty(), "layout: \"", beside,
        "\" stands beside \"streams\", expected in one of them");
  return streams;
}

Layout& Layout::add(const std::string& pattern, Entry entry) {
  check(!pattern.empty(), "layout: a pattern is empty");
  check(entry.dim >= -1, "layout: there is no dimension ", entry.dim, " of \"", pattern, "\"");
  check(names::count_stars(pattern) <= kStars, "layout: \"", pattern, "\" has more than three stars");
  for (const auto& [other, _] : entries_)
    check(other != pattern, "layout: \"", pattern, "\" is two things at once to the stream");
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
Layout& Layout::bare_entry() { return bare_entry_ = true, *this; }
Layout& Layout::recentre(const std::string& module) {
  check(!module.empty() && module.find('*') == std::string::npos, "layout: \"recentre\" is \"", module,
        "\", expected the name of one module");
  return recentred_ = module, *this;
}
Layout& Layout::width(int64_t d) { return width_ = d, *this; }

Layout& Layout::with(const std::string& path, const Layout& of_child) {
  const Layout child = of_child;  // a copy: of_child may be *this
  check(!path.empty(), "layout: the path of a module is empty");
  check(width_ == 0 || child.width_ == 0 || width_ == child.width_, "layout: its width is ", width_, ", that of '",
        path, "' ", child.width_);
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
  bare_entry_ = bare_entry_ || child.bare_entry_;
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
            tensors[i], "' is no writer");
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
