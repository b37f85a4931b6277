#include "core/error.h"

#include "core/printed.h"

namespace isonorm {
namespace {
thread_local Scope* innermost_scope = nullptr;
}

void append_text(std::string& s, double part) { s += number_text(part, std::chars_format::general, 9); }
void append_text(std::string& s, long long part) { s += number_text(part); }
void append_text(std::string& s, unsigned long long part) { s += number_text(part); }

void raise(ErrorKind kind, const std::string& message, const char* file, int line) {
  const std::string path = Scope::path();
  throw Error(kind, path.empty() ? message : path + ": " + message, file, line);
}

Scope::Scope(std::string_view name) : name_(name), outer_(innermost_scope) { innermost_scope = this; }
Scope::~Scope() { innermost_scope = outer_; }

std::string Scope::path() {
  std::string s;
  std::string_view inner;
  for (const Scope* p = innermost_scope; p; p = p->outer_) {
    const bool is_file =
        p->name_.find_first_of("./") != p->name_.npos;  // else a module, possibly nested in another with the same name
    const bool said = (is_file && inner == p->name_) || inner.starts_with(text(p->name_, '/'));
    if (p->name_.empty() || said) continue;
    inner = p->name_;
    s = s.empty() ? std::string(p->name_) : text(p->name_, '.', s);
  }
  return s;
}

}  // namespace isonorm
