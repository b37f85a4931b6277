#include "exchange/hub/port.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/system/foreign_text.h"
#include "core/system/name_pattern.h"
#include "core/view.h"
#include "io/checkpoint.h"

namespace isonorm::hub {
namespace {

using Change = Port::Change;

// A tensor of our model, and the folder's tensors that it corresponds to.
struct Step {
  std::string ours;
  std::vector<std::string> theirs;
  Change change;
  std::vector<int64_t> rows;  // if there are several: number of our rows for each
};

// Sizes of a model, from its options.
struct Sizes {
  explicit Sizes(const Metadata& options) {
    const auto number = [&](const char* name) { return options.contains(name) ? integer_at(options, name) : 0; };
    depth = number("model.depth"), patch = number("model.patch"), channels = number("model.channels");
    width = number("model.width"), heads = number("model.heads"), head_width = number("model.head_width");
    const int64_t shared = number("model.kv_heads") * head_width;
    qkv = {heads * head_width, shared, shared};
  }
  int64_t depth, patch, channels, width, heads, head_width;
  std::vector<int64_t> qkv;
};

std::vector<Step> steps_of(const Port& port, std::string_view stem, const Metadata& options) {
  const Sizes sizes(options);
  std::vector<Step> steps;
  const auto add = [&](const Port::Part& part, std::string_view end, int64_t block) {
    const auto named = [&](std::string_view name) {
      std::string whole = name[0] == '.' ? text(stem, name.substr(1), end) : text(name, end);
      return names::filled(whole, {text(block)});
    };
    Step step{named(part.ours), {}, part.change, sizes.qkv};
    for (std::string_view name : part.theirs) step.theirs.push_back(named(name));
    steps.push_back(std::move(step));
  };
  for (const Port::Part& part : port.parts) {
    if (!part.when.option.empty() && options.at(text("model.", part.when.option)) != part.when.value) continue;
    const int64_t blocks = part.ours.find('*') == part.ours.npos ? 1 : sizes.depth;
    for (int64_t block = 0; block < blocks; ++block)
      for (std::string_view end : part.ends.empty() ? std::vector<std::string_view>{""} : part.ends)
        add(part, end, block);
  }
  return steps;
}

void check_rank(const std::string& name, const Tensor& x, int rank) {
  check(x.rank() == rank, "tensor ", Shown{name}, " has shape ", x.shape(), ", expected ", rank, " dimensions");
}

Tensor transposed(const Tensor& x) { return x.rank() == 2 ? detached::transpose(x, 0, 1) : x; }

// Views the rows of x as [first, second, head_width, rest] and exchanges the first two axes.
Tensor exchanged(const Tensor& x, int64_t first, int64_t second, const Sizes& sizes, const std::string& name) {
  const int64_t rows = first * second * sizes.head_width;
  check(x.rank() > 0 && x.size(0) == rows, "tensor ", Shown{name}, " has shape ", x.shape(), ", expected ", rows,
        " rows");
  const Tensor apart = detached::reshape(x, {first, second, sizes.head_width, -1});
  return detached::reshape(detached::permute(apart, {1, 0, 2, 3}), x.shape());
}

// Converts a tensor of the folder, or its outline, to ours.
Tensor to_ours(const Step& s, const Tensor& x, const Sizes& sizes) {
  const std::string& name = s.theirs[0];
  switch (s.change) {
    case Change::none:
    case Change::turned:  // only for export
      return x;
    case Change::transposed:
      return transposed(x);
    case Change::patches:
      check_rank(name, x, 4);
      return detached::reshape(detached::permute(x, {0, 2, 3, 1}), {x.size(0), x.size(1) * x.size(2) * x.size(3)});
    case Change::row:
    case Change::rows:
      check_rank(name, x, 3);
      check(x.size(0) == 1 && (s.change == Change::rows || x.size(1) == 1), "tensor ", Shown{name}, " has shape ",
            x.shape(), ", expected [1, ", s.change == Change::rows ? "n" : "1", ", width]");
      return detached::reshape(x, s.change == Change::rows ? Dims{x.size(1), x.size(2)} : Dims{x.size(2)});
    case Change::by_head:
      return exchanged(x, sizes.heads, 3, sizes, name);
  }
  return x;
}

// Converts our tensor, or its outline, to the folder's. part: if our tensor became several, the index of this one.
Tensor to_theirs(const Step& s, const Tensor& x, const Sizes& sizes, size_t part) {
  switch (s.change) {
    case Change::turned: {
      if (part == 2) return x;  // values
      const Tensor apart = detached::reshape(x, {-1, 2, sizes.head_width / 2, x.numel() / x.size(0)});
      return detached::reshape(detached::permute(apart, {0, 2, 1, 3}), x.shape());
    }
    case Change::transposed:
      return transposed(x);
    case Change::patches:
      return detached::permute(detached::reshape(x, {x.size(0), sizes.patch, sizes.patch, sizes.channels}),
                               {0, 3, 1, 2});
    case Change::row:
      return detached::reshape(x, {1, 1, x.numel()});
    case Change::rows:
      return detached::reshape(x, {1, x.size(0), x.size(1)});
    case Change::by_head:
      return exchanged(x, 3, sizes.heads, sizes, s.ours);
    default:
      return x;
  }
}

const Tensor& needed(const TensorMap& outline, const std::string& name, std::string_view whose) {
  const Tensor* x = outline.find(name);
  check(x != nullptr, "there is no tensor '", name, "', which ", whose, " has");
  check(is_floating(x->dtype()), "tensor '", name, "' is of ", x->dtype(), ", expected floating numbers");
  return *x;
}

// The shape of several tensors concatenated along their first axis. Throws unless each has its number of rows.
Dims stacked_shape(const Step& s, const std::vector<Tensor>& parts) {
  Dims shape = parts[0].shape();
  for (size_t i = 0; i < parts.size(); ++i) {
    Dims expected = parts[0].shape();
    check(expected.rank > 0, "tensor ", Shown{s.theirs[i]}, " has no rows");
    expected[0] = s.rows[i];
    check(parts[i].shape() == expected && parts[i].dtype() == parts[0].dtype(), "tensor ", Shown{s.theirs[i]},
          " has shape ", parts[i].shape(), " of ", parts[i].dtype(), ", expected ", expected, " of ", parts[0].dtype());
    shape[0] = i == 0 ? s.rows[0] : shape[0] + s.rows[i];
  }
  return shape;
}

Tensor stacked(const Step& s, const std::vector<Tensor>& parts) {
  const Tensor all = empty(stacked_shape(s, parts), {parts[0].dtype()});
  int64_t first = 0;
  for (const Tensor& part : parts)
    copy_into(detached::narrow(all, 0, first, part.size(0)), part), first += part.size(0);
  return all;
}

std::string_view stem_of(const Port& port, const TensorMap& outline) {
  for (std::string_view stem : port.stems)
    if (outline.find(
            text(stem, port.parts[0].theirs[0].substr(1), port.parts[0].ends.empty() ? "" : port.parts[0].ends[0])))
      return stem;
  return port.stems[0];
}

bool same(const Tensor& x, const Tensor& y) {
  return x.dtype() == y.dtype() && x.shape() == y.shape() &&
         std::memcmp(bytes_of(x), bytes_of(y), static_cast<size_t>(byte_size(x))) == 0;
}

// Throws if the folder has a tensor that no step reads, unless it may be ignored or repeats the tied table.
void check_rest(const Port& port, const Folder& folder, std::string_view stem, const std::vector<Step>& steps) {
  std::set<std::string_view> read;
  for (const Step& s : steps) read.insert(s.theirs.begin(), s.theirs.end());
  for (const auto& [name, _] : folder.state.outline) {
    if (read.contains(name)) continue;
    std::vector<std::string> stars;
    if (std::ranges::any_of(port.ignored, [&, &name = name](std::string_view p) {
          return names::matches(text(stem, p.substr(1)), name, stars);
        }))
      continue;
    check(name == port.tied_head, "tensor ", Shown{name}, " has no place in our model of type '", port.type, "'");
    check(same(folder.state.read(name), folder.state.read(steps[0].theirs[0])),
          "config.json: \"tie_word_embeddings\" says that '", name, "' is '", steps[0].theirs[0],
          "', but their numbers differ");
  }
}

}  // namespace

LazyState imported(const Port& port, const Folder& folder, const Metadata& options) {
  const std::string_view stem = stem_of(port, folder.state.outline);
  const Sizes sizes(options);
  const int64_t depth = sizes.depth, held = folder.state.outline.size();
  check(depth <= held, "config.json says that there are ", depth, " blocks, the folder holds ", held, " tensors");
  const std::vector<Step> steps = steps_of(port, stem, options);
  const std::string whose = text("a model of type '", port.type, "'");
  LazyState result;
  std::map<std::string, Step> by_name;
  for (const Step& s : steps) {
    std::vector<Tensor> parts;
    for (const std::string& name : s.theirs) {
      const auto foreign = folder.foreign.find(name);
      check(foreign == folder.foreign.end(), "tensor '", name, "' is of ",
            foreign == folder.foreign.end() ? "" : foreign->second, ", expected floating numbers");
      parts.push_back(needed(folder.state.outline, name, whose));
    }
    result.outline.add(
        s.ours,
        outline(parts.size() == 1 ? to_ours(s, parts[0], sizes).shape() : stacked_shape(s, parts), parts[0].dtype()));
    by_name.emplace(s.ours, s);
  }
  check_rest(port, folder, stem, steps);
  result.read = [read = folder.state.read, by_name, sizes](const std::string& name) {
    const Step& s = by_name.at(name);
    if (s.theirs.size() == 1) return detached::contiguous(to_ours(s, read(s.theirs[0]), sizes));
    std::vector<Tensor> parts;
    for (const std::string& part : s.theirs) parts.push_back(read(part));
    return stacked(s, parts);
  };
  return result;
}

LazyState exported(const Port& port, const LazyState& ours, const Metadata& options) {
  const Sizes sizes(options);
  struct Place {
    Step step;
    int64_t first, rows;  // rows of our tensor; rows 0: all
    size_t part;          // index among several
  };
  LazyState result;
  std::map<std::string, Place> places;
  std::set<std::string> used;
  for (const Step& s : steps_of(port, port.stems[0], options)) {
    used.insert(s.ours);
    const Tensor& x = needed(ours.outline, s.ours, "the model");
    int64_t first = 0;
    for (size_t i = 0; i < s.theirs.size(); ++i) {
      const bool several = s.theirs.size() > 1;
      const int64_t rows = several ? s.rows[i] : 0;
      result.outline.add(
          s.theirs[i],
          outline(to_theirs(s, several ? detached::narrow(x, 0, first, rows) : x, sizes, i).shape(), x.dtype()));
      places.emplace(s.theirs[i], Place{s, first, rows, i});
      first += rows;
    }
  }
  for (const auto& [name, _] : ours.outline)
    check(used.contains(name), "tensor '", name, "' has no place in a model of type '", port.type, "'");
  result.read = [read = ours.read, places, sizes](const std::string& name) {
    const Place& p = places.at(name);
    const Tensor x = read(p.step.ours);
    return detached::contiguous(
        to_theirs(p.step, p.rows > 0 ? detached::narrow(x, 0, p.first, p.rows) : x, sizes, p.part));
  };
  return result;
}

}  // namespace isonorm::hub
