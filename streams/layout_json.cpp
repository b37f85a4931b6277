#include "streams/layout.h"

#include <algorithm>
#include <set>

#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "io/json_text.h"

namespace isonorm::streams {
namespace {

constexpr int64_t kWidthLimit = int64_t{1} << 32;

// Parses untrusted JSON. Throws if an object has two equal keys.
json document(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects around the next value
  const auto follow = [&](int depth, json::parse_event_t event, const json& value) {
    using Event = json::parse_event_t;
    check(depth <= kJsonDepth, "layout: the JSON is nested deeper than ", kJsonDepth, " levels");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key)
      check(keys.back().insert(value.get<std::string>()).second, "layout: \"", value.get<std::string>(),
            "\" is there twice");
    return true;
  };
  check(text.find('\0') == text.npos, "layout: json: byte ", text.find('\0'), ": expected no byte 0");
  const CNumbers in_c_locale;
  try {
    return json::parse(text, follow);
  } catch (const json::parse_error& e) {
    check(false, "layout: json: byte ", e.byte, ": ", printable(e.what(), 200));
  }
  return {};
}

// The values of a description. `what` names the value in errors.
const json& object(const json& value, const std::string& what) {
  check(value.is_object(), "layout: ", what, " is ", Shown{dump(value)}, ", expected {..}");
  return value;
}
const json& list(const json& value, const std::string& what) {
  check(value.is_array(), "layout: ", what, " is ", Shown{dump(value)}, ", expected [..]");
  return value;
}
std::string word(const json& value, const std::string& what) {
  check(value.is_string(), "layout: ", what, " is ", Shown{dump(value)}, ", expected a string");
  return value.get<std::string>();
}
int64_t number(const json& value, const std::string& what) {
  const std::optional<int64_t> n = whole_number(value);
  check(n && *n >= 0, "layout: ", what, " is ", Shown{dump(value)}, ", expected a whole number from 0 on");
  return *n;
}

// The entries of a writer, reader, norm or tied table.
class Fields {
 public:
  Fields(const json& value, const char* kind, const std::string& name, std::initializer_list<const char*> known)
      : value_(value), what_(text(kind, " \"", name, '"')) {
    for (const auto& [key, _] : object(value, what_).items())
      check(std::ranges::find(known, key) != known.end(), "layout: ", what_, " has an entry \"", key, "\", expected ",
            listed(known));
  }

  std::string text_of(const char* key) const {
    const auto at = value_.find(key);
    return at == value_.end() ? "" : word(*at, text('"', key, "\" of ", what_));
  }
  int64_t number_of(const char* key, int64_t otherwise) const {
    const auto at = value_.find(key);
    return at == value_.end() ? otherwise : number(*at, text('"', key, "\" of ", what_));
  }
  int dim() const {
    check(value_.contains("dim"), "layout: ", what_, " has no \"dim\"");
    return axis(number_of("dim", 0));
  }
  static int axis(int64_t dim) {
    check(dim < kMaxRank, "layout: there is no dimension ", dim);
    return static_cast<int>(dim);
  }

 private:
  static std::string listed(std::initializer_list<const char*> names) {
    std::string all;
    for (const char* name : names) all += text(all.empty() ? "" : name == names.end()[-1] ? " or " : ", ", name);
    return all;
  }

  const json& value_;
  std::string what_;
};

double eps_of(const std::string& norm, const json& value) {
  double eps = value.is_number() ? value.get<double>() : 0;
  if (!value.is_number()) {
    const std::string said = word(value, text("the eps of norm \"", norm, '"'));
    check(read_number(said, eps), "layout: the eps of norm \"", norm, "\" is \"", said,
          "\", expected a number such as 1e-5");
  }
  check(eps != 0, "layout: norm \"", norm, "\" has no \"eps\", or its eps is 0");
  return eps;
}

Layout::Norm norm_in(const std::string& norm, const json& value) {
  if (!value.is_object()) return {.eps = eps_of(norm, value)};
  const Fields of(value, "norm", norm, {"eps", "gain"});
  const std::string gain = of.text_of("gain");
  check(gain.empty() || gain == "w" || gain == "1+w", "layout: the gain of norm \"", norm, "\" is \"", gain,
        "\", expected \"w\" or \"1+w\"");
  return {.eps = eps_of(norm, value.contains("eps") ? value["eps"] : json(0)), .plus_one = gain == "1+w"};
}

// Adds the entries of the section `key` to the layout.
void add_section(Layout& layout, const std::string& key, const json& value) {
  const std::string what = text('"', key, '"');
  const auto each = [&](auto&& add) {  // calls add(pattern, value) for each member, once for each alternative
    for (const auto& [name, member] : object(value, what).items())
      for (const std::string& one : alternatives(name)) add(name, one, member);
  };
  if (key == "width") return void(layout.width(number(value, what)));
  if (key == "recentre") return void(layout.recentre(word(value, what)));
  if (key == "norms")
    return each([&](auto& name, auto& one, const json& norm) { layout.norm(one, norm_in(name, norm)); });
  if (key == "scales")
    return each([&](auto& name, auto& one, const json& vector) {
      layout.scale(one, word(vector, text("the layer scale of \"", name, '"')));
    });
  if (key == "writers")
    return each([&](auto& name, auto& one, const json& writer) {
      if (!writer.is_object())
        return void(layout.writes(one, Fields::axis(number(writer, text("writer \"", name, '"')))));
      const Fields of(writer, "writer", name, {"dim", "norm"});
      layout.writes(one, of.dim(), of.text_of("norm"));
    });
  if (key == "readers")
    return each([&](auto& name, auto& one, const json& reader) {
      const Fields of(reader, "reader", name, {"dim", "norm", "bias", "parts"});
      layout.reads(one, of.text_of("norm"), of.dim(), of.text_of("bias"), of.number_of("parts", 1));
    });
  if (key == "tied") {
    for (const auto& [table, tied] : object(value, what).items()) {
      const Fields of(tied, "tied", table, {"head", "norm", "bias"});
      layout.tied({table, of.text_of("head"), of.text_of("bias"), of.text_of("norm")});
    }
    return;
  }
  check(key == "others" || key == "not_on_stream" || key == "kept", "layout: there is no entry ", what,
        ", expected width, norms, kept, writers, readers, tied, scales, recentre, others or not_on_stream");
  for (const json& pattern : list(value, what))
    for (const std::string& one : alternatives(word(pattern, text("an entry of ", what))))
      key == "kept" ? layout.keep(one) : layout.other(one, key == "not_on_stream");
}

Layout layout_in(const json& sections) {
  Layout layout;
  for (const auto& [key, value] : object(sections, "the description").items()) add_section(layout, key, value);
  check(layout.width() > 0 && layout.width() <= kWidthLimit, "layout: \"width\" is ", layout.width(),
        ", expected the Pre-LN model's");
  return layout;
}

}  // namespace

Layout Layout::from_json(std::string_view json) {
  auto streams = streams_from_json(json);
  check(streams.front().first.empty(), "layout: it describes several streams, expected one");
  return std::move(streams.front().second);
}

std::vector<std::pair<std::string, Layout>> Layout::streams_from_json(std::string_view text) {
  const json said = document(text);
  if (!object(said, "the description").contains("streams")) return {{"", layout_in(said)}};
  for (const auto& [key, _] : said.items())
    check(key == "streams", "layout: \"", key, "\" is next to \"streams\", expected inside a stream");
  std::map<std::string, Layout> streams;
  for (const auto& [name, sections] : object(said["streams"], "\"streams\"").items()) {
    check(!name.empty(), "layout: a stream has no name");
    streams.emplace(name, layout_in(sections));
  }
  check(!streams.empty(), "layout: \"streams\" is empty");
  return {streams.begin(), streams.end()};
}

}  // namespace isonorm::streams
