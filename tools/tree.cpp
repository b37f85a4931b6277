#include "tools/tree.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"

namespace isonorm::tools {
namespace {

// Tensors by the parts of their names.
struct Branch {
  std::vector<std::pair<std::string, std::unique_ptr<Branch>>> children;
  std::string tensors;  // its own: "weight [64, 32], bias [64]"
  int64_t count = 0;    // of numbers, in all below it
};

struct Line {
  std::string name, count, tensors;
  bool operator==(const Line&) const = default;
};

constexpr int kMostLevels = 16;  // of the tree; what a name has beyond is one part

// -1 where it is none.
int64_t number(const std::string& s) {
  uint64_t n = 0;
  return read_number(s, n) && n < 1'000'000'000'000'000'000 ? static_cast<int64_t>(n) : -1;
}

void add(Branch& root, const std::string& name, const std::string& shape, int64_t count) {
  Branch* at = &root;
  at->count += count;
  size_t begin = 0, dot = 0;
  for (int level = 0; level < kMostLevels && (dot = name.find('.', begin)) != name.npos; ++level, begin = dot + 1) {
    const std::string part = printable(name.substr(begin, dot - begin), 60);
    auto child = std::ranges::find_if(at->children, [&](const auto& c) { return c.first == part; });
    if (child == at->children.end()) {  // numbers in their order
      child = std::ranges::find_if(at->children, [&](const auto& c) { return number(c.first) > number(part); });
      child = at->children.insert(number(part) < 0 ? at->children.end() : child, {part, std::make_unique<Branch>()});
    }
    at = child->second.get();
    at->count += count;
  }
  at->tensors += text(at->tensors.empty() ? "" : ", ", printable(name.substr(begin), 60), ' ', shape);
}

// What is below a branch; neighbours by number that are alike stand in one line: "0 to 11".
std::vector<Line> lines_of(const Branch& b) {
  std::vector<Line> lines;
  std::vector<std::vector<Line>> below;
  for (const auto& [_, child] : b.children) below.push_back(lines_of(*child));
  for (size_t i = 0, next; i < b.children.size(); i = next) {
    const auto& [name, child] = b.children[i];
    for (next = i + 1; next < b.children.size(); ++next) {
      const Branch& other = *b.children[next].second;
      const int64_t n = number(b.children[next - 1].first), after = number(b.children[next].first);
      if (n < 0 || after != n + 1 || other.count != child->count || other.tensors != child->tensors ||
          below[next] != below[i])
        break;
    }
    const bool several = next > i + 1;
    lines.push_back({several ? text(name, " to ", b.children[next - 1].first) : name,
                     text(several ? "each " : "", with_commas(child->count)), child->tensors});
    for (const Line& line : below[i]) lines.push_back({text("  ", line.name), line.count, line.tensors});
  }
  return lines;
}

}  // namespace

std::string with_commas(int64_t n) {
  std::string s = text(n);
  for (int64_t at = std::ssize(s) - 3; at > 0; at -= 3) s.insert(static_cast<size_t>(at), ",");
  return s;
}

std::vector<std::string> tree_of(const TensorMap& outline, const io::ForeignTypes& foreign) {
  std::set<std::string> dtypes;
  for (const auto& [name, tensor] : outline)
    dtypes.insert(foreign.contains(name) ? foreign.at(name) : text(tensor.dtype()));
  Branch root;
  for (const auto& [name, tensor] : outline) {
    const std::string dtype = foreign.contains(name) ? foreign.at(name) : text(tensor.dtype());
    add(root, name, text(tensor.shape(), dtypes.size() > 1 ? text(" ", dtype) : ""), tensor.numel());
  }
  std::vector<Line> lines = lines_of(root);
  int64_t bytes = 0;  // as they are in memory
  for (const auto& [name, tensor] : outline) bytes += byte_size(tensor);
  lines.insert(lines.begin(), {text(outline.size(), " tensors of ",
                                    dtypes.size() > 1 ? "several dtypes"
                                    : dtypes.empty()  ? "none"
                                                      : dtypes.begin()->c_str()),
                               with_commas(root.count),
                               text(root.tensors, root.tensors.empty() ? "" : "  ", with_commas(bytes), " bytes")});
  size_t name = 0, count = 0;
  for (const Line& line : lines) name = std::max(name, line.name.size()), count = std::max(count, line.count.size());
  std::vector<std::string> all;
  for (const Line& line : lines)
    all.push_back(text(line.name, std::string(name + 2 + count - line.name.size() - line.count.size(), ' '), line.count,
                       "  ", line.tensors));
  return all;
}

}  // namespace isonorm::tools
