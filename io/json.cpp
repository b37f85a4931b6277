#include "io/json.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/system/c_numbers.h"
#include "core/system/foreign_text.h"

namespace isonorm::io {
namespace {

using nlohmann::json;

// An input iterator that records how far the text was read.
struct Place {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  reference operator*() const { return *at; }
  Place& operator++() { return *reached = ++at, *this; }
  bool operator==(const Place& other) const { return at == other.at; }

  pointer at;
  pointer* reached;
};

class Events : public nlohmann::json_sax<json> {
 public:
  Events(std::string_view text, JsonValue value) : text_(text), reached_(text.data()), next_(std::move(value)) {}

  void read() {
    const size_t zero = text_.find('\0');  // nlohmann::json would stop there
    if (zero != text_.npos) fail(zero, "expected no byte 0");
    const CNumbers in_c_locale;
    json::sax_parse(Place{reached_, &reached_}, Place{text_.data() + text_.size(), nullptr}, this);
  }

  bool null() override { return take(&JsonValue::null, "null")(), true; }
  bool boolean(bool value) override { return take(&JsonValue::flag, "a truth value")(value), true; }
  bool number_integer(int64_t n) override { return number(static_cast<double>(n), "a negative number"); }
  bool number_float(double x, const std::string&) override {
    return number(x, "a number with a fraction or beyond 2^63");
  }
  bool binary(json::binary_t&) override { return refuse("bytes"); }
  bool number_unsigned(uint64_t n) override {
    if (n > INT64_MAX) return number_float(static_cast<double>(n), "");
    begin();
    if (next_.number && !next_.integer) return next_.number(static_cast<double>(n)), true;
    return expect(&JsonValue::integer, "a whole number")(static_cast<int64_t>(n)), true;
  }
  bool string(std::string& s) override { return take(&JsonValue::string, "a string")(s), true; }
  bool start_object(size_t) override {
    return take(&JsonValue::member, "'{'"), open_.push_back(std::move(next_)), true;
  }
  bool start_array(size_t) override {
    return take(&JsonValue::element, "'['"), open_.push_back(std::move(next_)), true;
  }
  bool key(std::string& key) override { return next_ = open_.back().member(key), true; }
  bool end_object() override { return end_array(); }
  bool end_array() override {
    if (open_.back().end) open_.back().end();
    return open_.pop_back(), true;
  }
  bool parse_error(size_t at, const std::string&, const json::exception& e) override {
    std::string_view why = e.what();  // "[json.exception.parse_error.101] ... while parsing value - unexpected ']'"
    if (const size_t dash = why.find(" - "); dash != why.npos) why.remove_prefix(dash + 3);
    return fail(at - 1, why);
  }

 private:
  bool fail(size_t at, std::string_view why) const {
    raise(ErrorKind::invalid, text("json: byte ", at, ": ", printable(why, 200)), __FILE__, __LINE__);
  }

  void begin() {
    if (!open_.empty() && open_.back().element) next_ = open_.back().element();
  }
  bool number(double x, std::string_view found) { return take(&JsonValue::number, found)(x), true; }
  // Consumes the beginning of a value and returns the caller's function for its kind.
  template <class F> F& take(F JsonValue::*kind, std::string_view found) { return begin(), expect(kind, found); }
  template <class F> F& expect(F JsonValue::*kind, std::string_view found) {
    if (kind == nullptr || !(next_.*kind)) {
      std::string expected;
      const std::pair<bool, std::string_view> kinds[] = {
          {!!next_.string, "a string"}, {!!next_.integer, "a whole number"},
          {!!next_.number, "a number"}, {!!next_.flag, "a truth value"},
          {!!next_.null, "null"},       {!!next_.member, "'{'"},
          {!!next_.element, "'['"}};
      for (const auto& [possible, name] : kinds)
        if (possible) expected += text(expected.empty() ? "" : " or ", name);
      fail(static_cast<size_t>(reached_ - text_.data()), text("expected ", expected, ", found ", found));
    }
    return next_.*kind;
  }
  bool refuse(std::string_view found) { return take<std::function<void()>>(nullptr, found), false; }

  std::string_view text_;
  const char* reached_;
  JsonValue next_;               // what the next value may be
  std::vector<JsonValue> open_;  // the enclosing objects and lists
};

}  // namespace

void read_json(std::string_view text, JsonValue value) { Events(text, std::move(value)).read(); }

void append_json_string(std::string& to, std::string_view s, const char* what) {
  try {
    to += json(s).dump();
  } catch (const json::type_error&) {
    check(false, what, ": the name or text ", Shown{s}, " is not UTF-8");
  }
}

}  // namespace isonorm::io
