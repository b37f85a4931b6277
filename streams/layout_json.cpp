#include <charconv>
#include <set>

#include "io/json.h"
#include "streams/layout.h"

namespace isonorm::streams {
namespace {

constexpr int64_t kWidthLimit = int64_t{1} << 32;

class LayoutReader {
 public:
  explicit LayoutReader(std::string_view json) : json_(json) {}

  Layout read() {
    std::set<std::string> seen;
    json_.object([&](const std::string& key) {
      check(seen.insert(key).second, "layout: \"", key, "\" is there twice");
      if (key == "width")
        layout_.width(json_.integer());
      else if (key == "norms")
        json_.object([&](const std::string& norm) { layout_.norm(norm, eps(norm)); });
      else if (key == "writers")
        json_.object([&](const std::string& pattern) { layout_.writes(pattern, dim()); });
      else if (key == "readers")
        json_.object([&](const std::string& pattern) { reader(pattern); });
      else if (key == "tied")
        json_.object([&](const std::string& table) { tied(table); });
      else if (key == "scales")
        json_.object([&](const std::string& writer) { layout_.scale(writer, json_.string()); });
      else if (key == "others" || key == "not_on_stream")
        json_.list([&] { layout_.other(json_.string(), key == "not_on_stream"); });
      else
        check(false, "layout: there is no entry \"", key,
              "\", expected width, norms, writers, readers, tied, scales, others or not_on_stream");
    });
    json_.end();
    check(layout_.width() > 0 && layout_.width() <= kWidthLimit, "layout: \"width\" is ", layout_.width(),
          ", expected the Pre-LN model's");
    return std::move(layout_);
  }

 private:
  double eps(const std::string& norm) {
    const std::string word = json_.string();
    double value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    check(error == std::errc() && stop == word.data() + word.size(), "layout: the eps of norm \"", norm, "\" is \"",
          word, "\", expected a number in quotes, such as \"1e-5\"");
    return value;
  }

  int dim() {
    const int64_t d = json_.integer();
    check(d < kMaxRank, "layout: there is no dimension ", d);
    return static_cast<int>(d);
  }

  void reader(const std::string& pattern) {
    int axis = -1;
    std::string norm, bias;
    json_.object([&](const std::string& field) {
      if (field == "dim")
        axis = dim();
      else if (field == "norm")
        norm = json_.string();
      else if (field == "bias")
        bias = json_.string();
      else
        check(false, "layout: reader \"", pattern, "\" has an entry \"", field, "\", expected dim, norm or bias");
    });
    check(axis >= 0, "layout: reader \"", pattern, "\" has no \"dim\"");
    layout_.reads(pattern, norm, axis, bias);
  }

  void tied(const std::string& table) {
    Layout::Tied t{.table = table, .weight = {}, .bias = {}, .norm = {}};
    json_.object([&](const std::string& field) {
      if (field == "head")
        t.weight = json_.string();
      else if (field == "norm")
        t.norm = json_.string();
      else if (field == "bias")
        t.bias = json_.string();
      else
        check(false, "layout: tied \"", table, "\" has an entry \"", field, "\", expected head, norm or bias");
    });
    layout_.tied(t);
  }

  io::JsonReader json_;
  Layout layout_;
};

}  // namespace

Layout Layout::from_json(std::string_view json) { return LayoutReader(json).read(); }

}  // namespace isonorm::streams
