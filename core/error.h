// The one exception type, and check(): a failed condition becomes one line with the operation, the problem and both
// values.
#pragma once

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace isonorm {

// Kinds of failure, for callers that choose an exit code: bad input, a refusal by the operating system, or lack of
// memory.
enum class ErrorKind { invalid, io, memory };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, const char* file, int line)
      : std::runtime_error(message), kind_(kind), file_(file), line_(line) {}
  // Used by a catch block that adds to the message and throws the error again. The class of the error stays.
  void set_message(const std::string& message) {
    static_cast<std::runtime_error&>(*this) = std::runtime_error(message);
  }
  ErrorKind kind() const { return kind_; }
  const char* file() const { return file_; }  // source position of the failed check, for developers
  int line() const { return line_; }

 private:
  ErrorKind kind_;
  const char* file_;
  int line_;
};

// A condition and the source position of the check. A variadic function cannot take the position as a default argument.
struct Condition {
  bool ok;
  const char* file;
  int line;
  Condition(bool condition, const char* f = __builtin_FILE(), int l = __builtin_LINE())
      : ok(condition), file(f), line(l) {}
};

// Text of the parts of a message. Types with values to show (Dims, DType, ...) add their own overload.
inline void append_text(std::string& s, std::string_view part) { s += part; }
inline void append_text(std::string& s, char part) { s += part; }
inline void append_text(std::string& s, const char* part) { s += part; }
void append_text(std::string& s, double part);
void append_text(std::string& s, long long part);
void append_text(std::string& s, unsigned long long part);
template <class T>
requires std::is_integral_v<T>
void append_text(std::string& s, T part) {
  if constexpr (std::is_same_v<T, bool>)
    s += part ? "true" : "false";
  else
    append_text(s, static_cast<std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>(part));
}

template <class... Parts> std::string text(const Parts&... parts) {
  std::string s;
  (append_text(s, parts), ...);
  return s;
}

// Throws Error. The path of the running module (see Scope) is put before the message.
[[noreturn]] void raise(ErrorKind kind, const std::string& message, const char* file, int line);

// raise() with the text of `parts`. Kept out of check(), so that a check is one branch in the code around it. Takes
// everything by value: a variable passed by reference would have to be in memory before the branch.
template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void raise_text(ErrorKind kind, const char* file, int line, Parts... parts) {
  raise(kind, text(parts...), file, line);
}

// Throws one line made of `parts` when the condition is false.
template <class... Parts> [[gnu::always_inline]] inline void check(const Condition& c, const Parts&... parts) {
  if (!c.ok) [[unlikely]]
    raise_text(ErrorKind::invalid, c.file, c.line, parts...);
}

// Like check(), for failures of files and devices.
template <class... Parts> [[gnu::always_inline]] inline void check_io(const Condition& c, const Parts&... parts) {
  if (!c.ok) [[unlikely]]
    raise_text(ErrorKind::io, c.file, c.line, parts...);
}

// While it lives, errors of this thread are prefixed with `name`; scopes nest into a module path ("blocks.3.mlp").
class Scope {
 public:
  [[nodiscard]] explicit Scope(std::string_view name);
  template <std::same_as<std::string> Temporary> explicit Scope(Temporary&&) = delete;  // it keeps a view of the name
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  static std::string path();  // the living scopes' names, joined by dots; empty outside of every module

 private:
  std::string_view name_;
  Scope* outer_;
};

}  // namespace isonorm
