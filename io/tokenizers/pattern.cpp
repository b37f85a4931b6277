#include "io/tokenizers/steps.h"

#include <pcre2.h>

#include <cctype>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::tokenizers {
namespace {

bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }

// Translates an expression to PCRE2's syntax.
class Translation {
 public:
  explicit Translation(std::string_view expression) : all_(expression), rest_(expression) {}

  std::string run() {
    while (!rest_.empty()) {
      if (rest_[0] == '\\') {
        escape();
      } else if (rest_[0] == '[') {
        set();
      } else if (rest_[0] == '(') {
        group();
      } else if (rest_[0] == '{') {
        interval();
      } else {
        if (is_one_of(rest_[0], "^$.")) refuse(1);  // engines differ in their notion of a line
        copy(1);
      }
    }
    return to_;
  }

 private:
  void copy(size_t n) { to_ += rest_.substr(0, n), rest_.remove_prefix(n); }
  void refuse(size_t n) const {
    check(false, "the pattern has ", Shown{rest_.substr(0, n)}, " at byte ", all_.size() - rest_.size(),
          ", which is not supported");
  }

  void escape() {
    const char c = rest_.size() > 1 ? rest_[1] : '\0';
    if (c == 's' || c == 'S') {  // PCRE2's \s also matches U+180E, which has not the property White_Space
      to_ += c == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      rest_.remove_prefix(2);
    } else if (c == 'p' || c == 'P') {
      const size_t end = std::min(rest_.find('}'), rest_.size());
      const std::string_view name = end > 3 ? rest_.substr(3, end - 3) : "";
      const bool braces = rest_.substr(2).starts_with('{') && end < rest_.size();
      const bool category = !name.empty() && is_one_of(name[0], "LMNPSZC") &&
                            (name.size() == 1 || (name.size() == 2 && std::islower(static_cast<uint8_t>(name[1]))));
      if (!braces || !category) refuse(end + 1);
      copy(end + 1);
    } else {
      if (!is_one_of(c, "rntd") && std::ispunct(static_cast<uint8_t>(c)) == 0) refuse(2);
      copy(2);
    }
  }

  void set() {
    copy(rest_.starts_with("[^") ? 2 : 1);
    if (rest_.starts_with(']')) refuse(1);
    while (!rest_.empty() && rest_[0] != ']') {
      if (rest_[0] == '[' || rest_.starts_with("&&")) refuse(2);
      if (rest_[0] == '\\')
        escape();
      else
        copy(1);
    }
    copy(1);
  }

  void group() {
    for (const std::string_view open : {"(?:", "(?i:", "(?=", "(?!"})
      if (rest_.starts_with(open)) return copy(open.size());
    if (rest_.starts_with("(?") || rest_.starts_with("(*")) refuse(4);
    copy(1);
  }

  void interval() {
    const size_t end = rest_.find('}');
    const std::string_view inside = rest_.substr(1, end == rest_.npos ? 0 : end - 1);
    const size_t comma = inside.find(',');
    if (inside.empty() || comma == 0 || inside.find_first_not_of("0123456789,") != inside.npos ||
        comma != inside.rfind(','))
      refuse(4);
    if (end + 1 < rest_.size() && is_one_of(rest_[end + 1], "+?")) refuse(end + 2);  // engines differ in its meaning
    copy(end + 1);
  }

  std::string_view all_, rest_;
  std::string to_;
};

std::string message(int code) {
  char buffer[160] = "";
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(buffer), sizeof buffer);
  return buffer;
}

}  // namespace

struct Pattern::Compiled {
  ~Compiled() { pcre2_match_data_free(match), pcre2_code_free(code); }

  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
};

Pattern::Pattern(const std::string& expression) : compiled_(std::make_unique<Compiled>()) {
  const std::string translated = Translation(expression).run();
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE, &error, &at, nullptr);
  check(compiled_->code != nullptr, "the pattern ", Shown{expression}, " is no regular expression: ", message(error));
  uint32_t empty = 0;
  pcre2_pattern_info(compiled_->code, PCRE2_INFO_MATCHEMPTY, &empty);
  check(empty == 0, "the pattern ", Shown{expression}, " can match nothing, which cuts no text into words");
  pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE);  // if it fails, pcre2_match interprets
  compiled_->match = pcre2_match_data_create(1, nullptr);
  check({compiled_->match != nullptr}, "no memory for the pattern ", Shown{expression});
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

Pattern::Match Pattern::find(std::string_view text, size_t from) {
  const int found = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                PCRE2_NO_UTF_CHECK, compiled_->match, nullptr);
  if (found == PCRE2_ERROR_NOMATCH) return {text.size(), text.size()};
  check(found >= 0, "the pattern gave up on the words from ", Shown{text.substr(from, 40)}, " on: ", message(found));
  const PCRE2_SIZE* place = pcre2_get_ovector_pointer(compiled_->match);
  return {place[0], place[1]};
}

}  // namespace isonorm::tokenizers
