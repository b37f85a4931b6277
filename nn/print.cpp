#include "nn/print.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "autograd/engine.h"
#include "core/printed.h"

namespace isonorm::nn {
namespace {

struct Line {
  std::string name, kind, count, tensors;
  bool operator==(const Line&) const = default;
};

// Tensors of the module itself, as "weight [64, 32] (frozen), running_mean [64] (buffer)".
std::string own_tensors(const Module& m) {
  const std::vector<NamedParameter> parameters = m.named_parameters();
  std::string s;
  for (const NamedParameter& t : m.named_state()) {
    if (t.name.find('.') != std::string::npos) continue;
    const bool parameter =
        std::any_of(parameters.begin(), parameters.end(), [&](const NamedParameter& p) { return p.name == t.name; });
    s += text(s.empty() ? "" : ", ", t.name, ' ', t.tensor.shape(),
              !parameter                ? " (buffer)"
              : requires_grad(t.tensor) ? ""
                                        : " (frozen)");
  }
  return s;
}

// The lines of a module and its descendants. The first line has no name yet.
std::vector<Line> lines_of(const Module& m) {
  const int64_t count = m.parameter_count();
  std::vector<Line> lines = {{"", kind_of(m), count ? text(count) : "", own_tensors(m)}};
  const auto& children = m.children();
  for (size_t i = 0; i < children.size();) {
    std::vector<Line> below = lines_of(*children[i]);
    size_t next = i + 1;
    while (next < children.size() && lines_of(*children[next]) == below) ++next;
    below[0].name = children[i]->name();
    if (next > i + 1) {
      below[0].name += " to " + children[next - 1]->name();
      below[0].tensors.insert(0, below[0].tensors.empty() ? "each" : "each ");
    }
    for (Line& l : below) lines.push_back({"  " + l.name, l.kind, l.count, l.tensors});
    i = next;
  }
  return lines;
}

}  // namespace

std::string kind_of(const Module& module) { return kind_of(typeid(module)); }

std::string kind_of(const std::type_info& type) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string s = demangled ? demangled : type.name();
  std::free(demangled);
  if (const size_t local = s.rfind(")::"); local != std::string::npos)
    s.erase(0, local + 3);  // a class inside a function
  for (const std::string part : {"isonorm::", "(anonymous namespace)::"})
    for (size_t at; (at = s.find(part)) != std::string::npos;) s.erase(at, part.size());
  return s;
}

std::string to_string(const Module& module) {
  std::vector<Line> lines = lines_of(module);
  std::swap(lines[0].name, lines[0].kind);
  size_t name = 0, kind = 0, count = 0;
  for (const Line& l : lines) {
    name = std::max(name, l.name.size()), kind = std::max(kind, l.kind.size()), count = std::max(count, l.count.size());
  }
  const auto left = [](std::string s, size_t width) { return s.append(width - s.size(), ' '); };
  std::string s;
  for (const Line& l : lines) {
    if (!s.empty()) s += '\n';
    std::string line = left(l.name, name) + "  " + left(l.kind, kind) + "  " +
                       std::string(count - l.count.size(), ' ') + l.count + "  " + l.tensors;
    s += line.erase(line.find_last_not_of(' ') + 1);
  }
  return s;
}

std::ostream& operator<<(std::ostream& os, const Module& module) { return os << to_string(module); }

}  // namespace isonorm::nn
