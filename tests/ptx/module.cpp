// Modules: kernels, functions and shared memory (sections 5.4, 11.1). Bodies are decoded when they are first needed.
#include <algorithm>

#include "tests/ptx/program.h"
#include "tests/ptx/text.h"

namespace isonorm::ptx {
namespace {

// Parameters follow each other, each at a multiple of its alignment (5.1.6.1).
size_t place_parameters(std::string_view list, std::vector<Parameter>& to) {
  size_t end = 0;
  for (const std::string& one : split_commas(list)) {
    const Declaration d = declaration(one);
    end = aligned(end, d.alignment);
    to.push_back({d.name, end, d.bytes});
    end += d.bytes;
  }
  return end;
}

uint32_t most_threads(std::string_view directives) {
  const size_t at = directives.find(".maxntid");
  if (at == directives.npos) return 1024;
  uint64_t most = 1;
  const std::string_view rest = directives.substr(at + 8);
  for (const std::string& n : split_commas(rest.substr(0, rest.find_first_of(".{"))))
    most *= number(words(n).at(0)).value_or(0);
  return static_cast<uint32_t>(most);
}

// ".visible .entry name(parameters) directives" or ".func (results) name(parameters)".
std::unique_ptr<Function> function(std::string_view head) {
  auto f = std::make_unique<Function>();
  const size_t entry = head.find(".entry");
  f->is_kernel = entry != head.npos;
  head = trimmed(head.substr(f->is_kernel ? entry + 6 : head.find(".func") + 5));
  if (head.starts_with('(')) {
    const size_t end = closing(head, 0);
    place_parameters(head.substr(1, end - 1), f->results);
    head = trimmed(head.substr(end + 1));
  }
  const size_t open = head.find('(');
  f->name = words(head.substr(0, open)).at(0);
  if (open == head.npos) return f;
  const size_t end = closing(head, open);
  f->parameter_bytes = place_parameters(head.substr(open + 1, end - open - 1), f->parameters);
  f->most_threads = most_threads(head.substr(end + 1));
  return f;
}

}  // namespace

std::unique_ptr<Module> parse(std::string_view source) {
  auto module = std::make_unique<Module>();
  const std::string text = without_comments(source);
  const auto line_of = [&](size_t at) {
    return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
  };
  for (size_t at = 0; (at = text.find_first_not_of(" \t\r\n", at)) != text.npos;) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with(".version") || rest.starts_with(".target") || rest.starts_with(".address_size")) {
      at = std::min(text.size(), text.find('\n', at));
      continue;
    }
    const size_t end = std::min(rest.find_first_of(";{"), rest.size());
    const std::string_view head = rest.substr(0, end);
    const bool has_body = end < rest.size() && rest[end] == '{';
    if (head.find(".entry") != head.npos || head.find(".func") != head.npos) {
      auto f = function(head);
      f->module = module.get();
      at += end + 1;
      if (has_body) {
        const size_t close = closing(text, at - 1);
        f->line = line_of(at);
        f->body = text.substr(at, close - at);
        at = close + 1;
      }
      auto& place = module->functions[f->name];
      if (has_body || !place) place = std::move(f);
    } else if (head.find(".shared") != head.npos && !has_body) {
      const Declaration d = declaration(head);
      module->shared[d.name] = {d.alignment, d.bytes, d.is_extern};
      at += end + 1;
    } else {
      throw Fault(Fault::Kind::refused,
                  "ptx: line " + std::to_string(line_of(at)) + ": " + std::string(head.substr(0, 200)));
    }
  }
  return module;
}

}  // namespace isonorm::ptx
