#include "io/tree.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"

namespace isonorm::io {
namespace {

// Tensors by the parts of their names.
struct Branch {
  std::string name;
  int64_t number = 0;  // the name as a number, kNoNumber if it is none
  std::vector<std::unique_ptr<Branch>> children;
  std::unordered_map<std::string, Branch*> by_name;  // the children
  std::string tensors;                               // its own: "weight [64, 32], bias [64]"
  int64_t count = 0;                                 // of numbers, in all below it
};

struct Line {
  std::string name, count, tensors;
  bool operator==(const Line&) const = default;
};

constexpr int kMostLevels = 16;       // of the tree; the rest of a longer name is one part
constexpr size_t kMostBytes = 2'000;  // of the tensors in a line; the middle of a longer list is left out
constexpr int64_t kNoNumber = std::numeric_limits<int64_t>::max();

int64_t number(const std::string& s) {
  uint64_t n = 0;
  return read_number(s, n) && n < 1'000'000'000'000'000'000 ? static_cast<int64_t>(n) : kNoNumber;
}

void add(Branch& root, const std::string& name, const std::string& shape, int64_t count) {
  Branch* at = &root;
  at->count += count;
  size_t begin = 0, dot = 0;
  for (int level = 0; level < kMostLevels && (dot = name.find('.', begin)) != name.npos; ++level, begin = dot + 1) {
    const std::string part = printable(name.substr(begin, dot - begin), 60);
    Branch*& child = at->by_name[part];
    if (child == nullptr) {
      child = at->children.emplace_back(std::make_unique<Branch>()).get();
      child->name = part, child->number = number(part);
    }
    at = child;
    at->count += count;
  }
  at->tensors += text(at->tensors.empty() ? "" : ", ", printable(name.substr(begin), 60), ' ', shape);
}

// The lines below a branch: numbers in their order, then names. Consecutive numbers that are alike share a line: "0 to
// 11".
std::vector<Line> lines_of(Branch& b) {
  std::vector<Line> lines;
  std::vector<std::vector<Line>> below;
  std::ranges::stable_sort(b.children, {}, &Branch::number);
  for (const auto& child : b.children) below.push_back(lines_of(*child));
  for (size_t i = 0, next; i < b.children.size(); i = next) {
    const Branch& child = *b.children[i];
    for (next = i + 1; next < b.children.size(); ++next) {
      const Branch &before = *b.children[next - 1], &other = *b.children[next];
      if (other.number == kNoNumber || other.number != before.number + 1 || other.count != child.count ||
          other.tensors != child.tensors || below[next] != below[i])
        break;
    }
    const bool several = next > i + 1;
    lines.push_back({several ? text(child.name, " to ", b.children[next - 1]->name) : child.name,
                     text(several ? "each " : "", with_commas(child.count)), child.tensors});
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
                       "  ", printable(line.tensors, kMostBytes)));
  return all;
}

}  // namespace isonorm::io
