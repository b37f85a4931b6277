#include "equivalence/explain/recorded.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/printed.h"
#include "core/system/name_pattern.h"

namespace isonorm::equivalence {
namespace {

struct Word {
  std::string_view text;
  Stage stage;
  Side side;
  bool begins;  // it may also come before the name
};
constexpr Word kWords[] = {
    {"input", Stage::forward, Side::input, false},       {"output", Stage::forward, Side::output, false},
    {"grad", Stage::gradient, Side::parameter, true},    {"gradient", Stage::gradient, Side::parameter, true},
    {"grads", Stage::gradient, Side::parameter, true},   {"gradients", Stage::gradient, Side::parameter, true},
    {"grad_input", Stage::gradient, Side::input, false}, {"grad_output", Stage::gradient, Side::output, false},
    {"before", Stage::before, Side::parameter, true},    {"after", Stage::after, Side::parameter, true},
};
constexpr std::string_view kStates[] = {"exp_avg", "exp_avg_sq", "momentum_buffer", "square_avg"};
constexpr size_t kMostGiven = 1024, kMostParts = 32;  // most layers, and most parts of a name that is looked up

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

// The number in the text if it is a non-negative number; else nothing.
std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  return read_number(text, number) && number >= 0 ? std::optional(number) : std::nullopt;
}

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    parts.emplace_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string joined(std::span<const std::string> parts) {
  std::string name;
  for (const std::string& part : parts) name += (name.empty() && &part == parts.data() ? "" : ".") + part;
  return name;
}

std::string layer(const std::string& of) {
  for (std::string_view end : {".weight", ".bias"})
    if (of.size() > end.size() && of.ends_with(end)) return of.substr(0, of.size() - end.size());
  return of;
}

// The position of a tensor among the layers.
struct Position {
  double group = std::numeric_limits<double>::infinity();  // last, if no layer is known
  std::string number;                                      // of the block
  double entry = 0;

  bool known() const { return group < std::numeric_limits<double>::infinity(); }
  bool operator<(const Position& o) const {
    if (group != o.group) return group < o.group;
    if (number != o.number) return naturally_before(number, o.number);
    return entry < o.entry;
  }
};

// Layers in order. A pattern with a star means a layer in every block.
class Layers {
 public:
  explicit Layers(std::span<const std::string> patterns) {
    std::string before;  // the first star of the last pattern
    for (const std::string& pattern : patterns) {
      const size_t star = pattern.find('*');
      const std::string begin = star == pattern.npos ? "" : pattern.substr(0, star + 1);
      if (entries_.empty() || begin.empty() || begin != before) ++groups_;
      before = begin;
      entries_.push_back({parts_of(pattern), static_cast<double>(groups_)});
    }
  }

  Position of(const Recorded& r) const {
    const std::vector<std::string> parts = parts_of(r.of);
    for (size_t k = std::min(parts.size(), kMostParts); k > 0; --k) {
      const std::string begin = joined(std::span(parts).first(k));
      std::vector<std::pair<size_t, std::string>> met;  // entries that begin like the name, and their block numbers
      for (size_t i = 0; i < entries_.size(); ++i) {
        const std::vector<std::string>& e = entries_[i].parts;
        std::vector<std::string> stars;
        const std::string pattern = e.size() < k ? "" : joined(std::span(e).first(k));
        if (pattern.empty() || (pattern != begin && !names::matches(pattern, begin, stars))) continue;
        const std::string number = stars.empty() ? "" : stars[0];
        if (e.size() == k) return at(i, number, 0);
        met.emplace_back(i, number);
      }
      if (met.empty()) continue;
      const bool container = k == parts.size(), behind = container && r.side == Side::output;
      const auto& [entry, number] = container && !behind ? met.front() : met.back();
      return at(entry, number, behind ? 0.5 : -0.5);
    }
    return {};
  }

 private:
  struct Entry {
    std::vector<std::string> parts;
    double group;
  };
  // The position next to entry i. Without a block number it is next to all blocks.
  Position at(size_t i, const std::string& number, double beside) const {
    const bool all = number.empty() && beside != 0;
    return {entries_[i].group + (all ? beside : 0), number, static_cast<double>(i) + beside};
  }

  std::vector<Entry> entries_;
  int groups_ = 0;
};

// The layers of a layout. A block lists each norm, its readers, and then its writers: of w writers and n norms, the
// first w / n writers come after the first norm.
std::vector<std::string> layers_of(const streams::Layout& layout) {
  struct Block {
    std::vector<std::string> norms, writers;
    std::map<std::string, std::vector<std::string>> readers;  // by norm
  };
  std::vector<std::string> begins, all, last;
  std::map<std::string, Block> blocks;
  const auto once = [](std::vector<std::string>& list, const std::string& name) {
    if (!name.empty() && std::ranges::find(list, name) == list.end()) list.push_back(name);
  };
  for (const auto& [pattern, entry] : layout.entries()) {
    const std::string name = layer(pattern);
    const bool reader = entry.role == streams::Role::reader;
    if (entry.role == streams::Role::neutral) continue;
    const size_t star = name.find('*');
    if (star == name.npos || (reader && entry.norm.find('*') == entry.norm.npos)) {
      if (reader) once(last, entry.norm);
      if (star == name.npos) once(reader ? last : all, name);  // otherwise it belongs to its block, of another stream
      continue;
    }
    const std::string begin = name.substr(0, star);
    once(begins, begin);
    Block& block = blocks[begin];
    if (!reader) {
      once(block.writers, name);
    } else {
      once(block.norms, entry.norm);
      once(block.readers[entry.norm], name);
    }
  }
  for (const std::string& begin : begins) {
    Block& b = blocks[begin];
    const size_t norms = std::max<size_t>(b.norms.size(), 1);
    size_t written = 0;
    for (size_t n = 0; n < norms; ++n) {
      if (n < b.norms.size()) {
        once(all, b.norms[n]);
        for (const std::string& reader : b.readers[b.norms[n]]) once(all, reader);
      }
      for (const size_t until = b.writers.size() * (n + 1) / norms; written < until; ++written)
        once(all, b.writers[written]);
    }
  }
  for (const std::string& name : last) once(all, name);
  for (const streams::Layout::Tied& t : layout.tied()) once(all, t.norm), once(all, layer(t.weight));
  return all;
}

// True if a block of `other` reads from the stream of `layout`: it has a reader through a norm that is in no block.
bool feeds(const streams::Layout& layout, const streams::Layout& other) {
  const auto block = [](const std::string& name) { return name.substr(0, name.find('*') + 1); };
  return std::ranges::any_of(layout.entries(), [&](const auto& read) {
    const std::string here = block(read.first);
    return !here.empty() && read.second.role == streams::Role::reader && block(read.second.norm).empty() &&
           std::ranges::any_of(other.entries(), [&](const auto& write) {
             return write.second.role == streams::Role::writer && block(write.first) == here;
           });
  });
}

std::vector<std::string> layers_of(std::span<const streams::Layout> layouts) {
  std::vector<const streams::Layout*> order;
  for (const streams::Layout& layout : layouts)
    order.insert(std::ranges::find_if(order, [&](const auto* other) { return feeds(layout, *other); }), &layout);
  std::vector<std::string> all;
  for (const streams::Layout* layout : order)
    for (std::string& name : layers_of(*layout)) all.push_back(std::move(name));
  return all;
}

// True if the order may be the safetensors library's: by dtype, and by name within a dtype.
bool sorted_by_library(const TensorMap& file) {
  std::set<DType> seen;
  const std::pair<std::string, Tensor>* last = nullptr;
  for (const auto& entry : file) {
    const bool same = last && last->second.dtype() == entry.second.dtype();
    if (same ? entry.first < last->first : !seen.insert(entry.second.dtype()).second) return false;
    last = &entry;
  }
  return true;
}

struct Placed {
  Recorded what;
  Position position;
  std::string name;
};

bool earlier(const Placed& a, const Placed& b) {
  if (a.what.step != b.what.step) return a.what.step < b.what.step;
  if (a.what.stage != b.what.stage) return a.what.stage < b.what.stage;
  const bool back = a.what.stage == Stage::gradient;
  const Placed &x = back ? b : a, &y = back ? a : b;
  if (x.position < y.position || y.position < x.position) return x.position < y.position;
  if (layer(x.what.of) == layer(y.what.of) && x.what.side != y.what.side) return x.what.side < y.what.side;
  return x.name != y.name && naturally_before(x.name, y.name);
}

}  // namespace

Recorded recorded(const std::string& name) {
  const std::vector<std::string> parts = parts_of(name);
  size_t first = 0, last = parts.size() - 1;  // range of the parts that are none of these words
  Recorded r;
  const auto says = [&r](const std::string& part, bool begins) {
    for (const Word& w : kWords)
      if (part == w.text && (w.begins || !begins)) {
        if (r.stage != Stage::gradient || w.stage != Stage::forward) r.stage = w.stage;  // NAME.output.grad
        if (w.side != Side::parameter) r.side = w.side;
        return true;
      }
    return false;
  };
  for (bool more = true; more && first < last;) {
    const auto step = first + 1 < last && parts[first] == "step" ? number_in(parts[first + 1]) : std::nullopt;
    more = step || says(parts[first], true);
    if (step) r.step = *step;
    if (more) first += step ? 2 : 1;
  }
  if (std::ranges::find(kStates, parts[last]) != std::end(kStates)) r.stage = Stage::state;
  while (first < last && says(parts[last], false)) --last;
  r.of = joined(std::span(parts).subspan(first, last - first + 1));
  if (r.of == "loss" || r.of == "logits" || parts[last].starts_with("hook_"))
    if (r.stage != Stage::gradient) r.stage = Stage::forward, r.side = Side::output;
  return r;
}

bool naturally_before(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto number = [](std::string_view text, size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const size_t begin = at;
      while (at < text.size() && digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = number(a, i), y = number(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

ExecutionOrder execution_order(const TensorMap& file, bool gradients, std::span<const std::string> given,
                               std::span<const streams::Layout> layouts) {
  ExecutionOrder order;
  std::set<std::string> of_given(given.begin(), given.end());
  const bool exact = std::ranges::all_of(file, [&](const auto& entry) { return of_given.contains(entry.first); });
  if (!given.empty() && exact) {
    for (const std::string& name : given)
      if (file.find(name) && of_given.erase(name)) order.names.push_back(name);
    order.source = "that was given";
    return order;
  }
  check(given.size() <= kMostGiven, "order: it has ", given.size(), " layers, at most ", kMostGiven, " are read");
  const std::vector<std::string> named =
      given.empty() ? layers_of(layouts) : std::vector<std::string>(given.begin(), given.end());
  const Layers layers(named);
  const bool by_file = named.empty() && !sorted_by_library(file);
  std::vector<Placed> all;
  std::map<std::string, double> first;  // first place of a tensor or layer in the file, without gradients
  for (const auto& [name, tensor] : file) {
    Placed p{recorded(name), {}, name};
    if (gradients && p.what.stage == Stage::before) p.what.stage = Stage::gradient;
    if (by_file) p.position = {0, "", static_cast<double>(all.size())};
    if (p.what.stage != Stage::gradient) first.emplace(p.what.of, p.position.entry);
    if (!named.empty()) p.position = layers.of(p.what);
    all.push_back(std::move(p));
  }
  check(given.empty() || std::ranges::any_of(all, [](const Placed& p) { return p.position.known(); }),
        "order: no tensor is of '", given.empty() ? "" : given[0], "', nor of another of its ", given.size(), " names");
  if (by_file)
    for (Placed& p : all)
      if (const auto at = first.find(p.what.of); at != first.end() && p.what.stage != Stage::forward)
        p.position.entry = at->second;
  std::ranges::stable_sort(all, earlier);
  for (const Placed& p : all) order.names.push_back(p.name);
  order.source = !given.empty()   ? "that was given"
                 : !named.empty() ? "of the layout"
                 : by_file        ? "of the file"
                                  : "of names";
  return order;
}

}  // namespace isonorm::equivalence
