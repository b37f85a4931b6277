#include "equivalence/convert/parse_layout.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/system/name_pattern.h"
#include "io/json.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Role;

constexpr int64_t kWidthLimit = int64_t{1} << 32;

class SpecReader {
 public:
  SpecReader(std::string_view json, const TensorMap& state, bool converted)
      : json_(json), state_(state), converted_(converted) {
    std::set<std::string> seen;
    json_.object([&](const std::string& key) {
      check(seen.insert(key).second, "layout: \"", key, "\" is there twice");
      if (key == "width")
        layout_.width = json_.integer();
      else if (key == "norms")
        norms();
      else if (key == "writers")
        writers();
      else if (key == "readers")
        readers();
      else if (key == "tied")
        tied();
      else if (key == "scales")
        scales();
      else if (key == "others")
        json_.list([&] { others_.push_back(pattern(key)); });
      else if (key == "not_on_stream")
        json_.list([&] { not_on_stream_.push_back(pattern(key)); });
      else
        check(false, "layout: there is no entry \"", key,
              "\", expected width, norms, writers, readers, tied, scales, others or not_on_stream");
    });
    json_.end();
    check(layout_.width > 0 && layout_.width <= kWidthLimit, "layout: \"width\" is ", layout_.width,
          ", expected the Pre-LN model's");
  }

  Layout take() {
    const std::set<std::string> of_norms = norm_names();
    for (const auto& [name, tensor] : state_)
      if (!of_norms.contains(name)) place(name);
    for (const auto& [pattern, used] : used_) check(used, "layout: no tensor is called \"", pattern, "\"");
    untie();
    check_norms();
    know_biases();
    return std::move(layout_);
  }

 private:
  struct Entry {
    Role role = Role::neutral;
    int dim = 0;
    std::string norm = {}, bias = {};
  };

  // One of the list `entry`.
  std::string pattern(const std::string& entry) {
    std::string p = json_.string();
    check(!p.empty(), "layout: \"", entry, "\" has an empty name");
    check(names::count_stars(p) <= 3, "layout: \"", p, "\" in \"", entry, "\" has more than three stars");
    return p;
  }

  int dim() {
    const int64_t d = json_.integer();
    check(d < kMaxRank, "layout: there is no dimension ", d);
    return static_cast<int>(d);
  }

  void add(const std::string& pattern, Entry entry) {
    check(names::count_stars(pattern) <= 3, "layout: \"", pattern, "\" has more than three stars");
    check(entries_.emplace(pattern, std::move(entry)).second, "layout: \"", pattern,
          "\" is two things at once to the stream");
    used_[pattern] = false;
  }

  void norms() {
    json_.object([&](const std::string& key) {
      const std::string word = json_.string();
      double eps = 0;
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), eps);
      check(error == std::errc() && stop == word.data() + word.size(), "layout: the eps of norm \"", key, "\" is \"",
            word, "\", expected a number in quotes, such as \"1e-5\"");
      check(norms_.emplace(key, eps).second, "layout: norm \"", key, "\" is there twice");
    });
  }

  void writers() {
    json_.object([&](const std::string& key) { add(key, {.role = Role::writer, .dim = dim()}); });
  }

  void readers() {
    json_.object([&](const std::string& key) {
      Entry e{.role = Role::reader, .dim = -1};
      json_.object([&](const std::string& field) {
        if (field == "dim")
          e.dim = dim();
        else if (field == "norm")
          e.norm = json_.string();
        else if (field == "bias")
          e.bias = json_.string();
        else
          check(false, "layout: reader \"", key, "\" has an entry \"", field, "\", expected dim, norm or bias");
      });
      check(e.dim >= 0, "layout: reader \"", key, "\" has no \"dim\"");
      if (e.bias.empty()) e.bias = bias_beside(key);
      check(!e.bias.empty(), "layout: reader \"", key, "\" has no \"bias\", and no name to make one from");
      add(key, std::move(e));
    });
  }

  void tied() {
    json_.object([&](const std::string& key) {
      TiedHead t{.table = key, .weight = {}, .bias = {}, .norm = {}};
      for (const TiedHead& other : layout_.tied) check(other.table != key, "layout: tied \"", key, "\" is there twice");
      json_.object([&](const std::string& field) {
        if (field == "head")
          t.weight = json_.string();
        else if (field == "norm")
          t.norm = json_.string();
        else if (field == "bias")
          t.bias = json_.string();
        else
          check(false, "layout: tied \"", key, "\" has an entry \"", field, "\", expected head, norm or bias");
      });
      if (t.bias.empty()) t.bias = bias_beside(t.weight);
      check(!t.bias.empty(), "layout: tied \"", key, "\": \"head\" must end with \"weight\", or \"bias\" be given");
      layout_.tied.push_back(std::move(t));
    });
  }

  void scales() {
    json_.object([&](const std::string& key) {
      check(scales_.emplace(key, json_.string()).second, "layout: \"", key, "\" has two layer scales");
      used_[key] |= false;
    });
  }

  // Finds the norms that the state has gains or biases of, or that readers name; returns the names of those tensors.
  std::set<std::string> norm_names() {
    std::set<std::string> names;
    const auto add_norm = [&](const std::string& name, double eps) {
      if (layout_.find_norm(name)) return;
      NormPlace n{.name = name, .eps = eps};
      if (state_.find(name + ".weight")) n.weight = name + ".weight", names.insert(n.weight);
      if (state_.find(name + ".bias")) n.bias = name + ".bias", names.insert(n.bias);
      layout_.norms.push_back(n);
    };
    for (const auto& [pattern, eps] : norms_) {
      bool found = pattern.find('*') == std::string::npos;
      if (found) add_norm(pattern, eps);
      for (const auto& [name, tensor] : state_)
        for (std::string_view end : {".weight", ".bias"}) {
          if (!name.ends_with(end)) continue;
          const std::string norm = name.substr(0, name.size() - end.size());
          if (pattern_of(norm) != &pattern) continue;
          found = met_norms_[pattern] = true;
          add_norm(norm, eps);
        }
      plain_norms_ |= !found;
    }
    return names;
  }

  // The pattern that a norm is described by, its own name before all others; null where there is none.
  const std::string* pattern_of(const std::string& norm) const {
    if (const auto own = norms_.find(norm); own != norms_.end()) return &own->first;
    const std::string* found = nullptr;
    for (const auto& [pattern, eps] : norms_) {
      std::vector<std::string> stars;
      if (!names::matches(pattern, norm, stars)) continue;
      check(!found, "layout: norm '", norm, "' is \"", found ? *found : "", "\" and \"", pattern, "\" at once");
      found = &pattern;
    }
    return found;
  }

  // A pattern of norms met something where a tensor or a reader is of such a norm.
  void check_norms() {
    const auto meet = [&](const std::string& norm) {
      if (const std::string* pattern = norm.empty() ? nullptr : pattern_of(norm)) met_norms_[*pattern] = true;
    };
    for (const Place& p : layout_.places) meet(p.norm);
    for (const TiedHead& t : layout_.tied) meet(t.norm);
    for (const auto& [pattern, eps] : norms_)
      check(met_norms_[pattern], "layout: no tensor or reader is of a norm \"", pattern, "\"");
  }

  // The entry of one tensor.
  void place(const std::string& name) {
    const std::string* found = nullptr;
    std::vector<std::string> stars;
    Place p{.name = name};
    const auto take = [&](const std::string& pattern) {
      std::vector<std::string> here;
      if (!names::matches(pattern, name, here)) return false;
      check(!found, "layout: tensor '", name, "' is \"", found ? *found : "", "\" and \"", pattern, "\" at once");
      found = &pattern, stars = here;
      return true;
    };
    for (const auto& [pattern, entry] : entries_) {
      if (!take(pattern)) continue;
      used_[pattern] = true;
      p.role = entry.role, p.dim = entry.dim;
      p.norm = names::filled(entry.norm, stars), p.bias = names::filled(entry.bias, stars);
      if (p.role == Role::reader && !p.norm.empty() && plain_norms_) add_plain_norm(p.norm);
    }
    bool scaled = false;
    for (const auto& [pattern, scale] : scales_) {
      std::vector<std::string> here;
      if (!names::matches(pattern, name, here)) continue;
      used_[pattern] = true;
      const std::string vector = names::filled(scale, here);
      check(!vector.empty(), "layout: the layer scale of \"", pattern, "\" has an empty name");
      check(p.role == Role::writer, "layout: \"", pattern, "\" has the layer scale '", vector, "', and '", name,
            "' is no writer");
      check(!scaled, "layout: tensor '", name, "' has two layer scales");
      scaled = true;
      if (!converted_ || state_.find(vector)) p.scale = vector;
    }
    for (const std::string& pattern : others_)
      if (take(pattern)) p.said = false;
    for (const std::string& pattern : not_on_stream_) take(pattern);
    if (found) layout_.places.push_back(p);
  }

  const Place* find(const std::string& name) const {
    for (const Place& p : layout_.places)
      if (p.name == name) return &p;
    return nullptr;
  }

  // Where the state has the head, the table is not tied (any more).
  void untie() {
    std::vector<TiedHead> still;
    for (const TiedHead& t : layout_.tied) {
      const Place* table = find(t.table);
      if (plain_norms_) add_plain_norm(t.norm);
      if (table && state_.find(t.weight) && !find(t.weight))
        layout_.places.push_back(
            {.name = t.weight, .role = Role::reader, .dim = table->dim, .norm = t.norm, .bias = t.bias});
      else
        still.push_back(t);
    }
    layout_.tied = std::move(still);
  }

  // A reader's bias is known by its reader, and may be as long as the stream is wide.
  void know_biases() {
    std::set<std::string> biases;
    for (const Place& p : layout_.places)
      if (p.role == Role::reader) biases.insert(p.bias);
    for (Place& p : layout_.places) p.said = p.said || biases.contains(p.name);
    for (const std::string& name : biases)
      if (state_.find(name) && !find(name)) layout_.places.push_back({.name = name});
  }

  // A norm without gain or bias has no tensor to be known by: its readers name it.
  void add_plain_norm(const std::string& name) {
    if (layout_.find_norm(name)) return;
    if (const std::string* pattern = pattern_of(name))
      layout_.norms.push_back({.name = name, .eps = norms_.at(*pattern)});
  }

  io::JsonReader json_;
  const TensorMap& state_;
  const bool converted_;
  Layout layout_;
  std::map<std::string, double> norms_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, bool> used_, met_norms_;
  std::map<std::string, std::string> scales_;
  std::vector<std::string> others_, not_on_stream_;
  bool plain_norms_ = false;  // whether a pattern of norms met no tensor
};

}  // namespace

Layout parse_layout(std::string_view json, const TensorMap& state, streams::Form form, bool converted) {
  Layout layout = SpecReader(json, state, converted).take();
  layout.form = form;
  return layout;
}

}  // namespace isonorm::equivalence
