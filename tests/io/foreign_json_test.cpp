// JSON from outside, at any depth.
#include "io/json_text.h"

#include "tests/support/catch.h"

using namespace isonorm;

namespace {

std::string nested(int depth, const std::string& open = "[", const std::string& close = "]") {
  std::string s;
  for (int i = 0; i < depth; ++i) s += open;
  s += "1";
  for (int i = 0; i < depth; ++i) s += close;
  return s;
}

}  // namespace

TEST_CASE("foreign JSON: values are kept; wrong kinds and deep nesting are ignored") {
  CHECK(parsed(R"({"a": [1, {"b": "c"}]})")["a"][1]["b"] == "c");
  CHECK(parsed("2.5") == 2.5);
  for (const char* none : {"", "{", "[1,]", "{\"a\":}", "abc", "\x80"}) CHECK(parsed(none).is_discarded());
  CHECK(parsed(nested(kJsonDepth)).is_array());
  CHECK(parsed(nested(kJsonDepth + 1)).is_discarded());
  for (int depth : {100'000, 1'000'000}) {
    CHECK(parsed(nested(depth)).is_discarded());
    CHECK(parsed(nested(depth, "{\"a\":", "}")).is_discarded());
    CHECK(parsed(std::string(static_cast<size_t>(depth), '[')).is_discarded());
  }
}
