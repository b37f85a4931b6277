// Name patterns against a matcher that tries every length for every star.
#include "core/system/name_pattern.h"

#include "tests/support/catch.h"

using namespace isonorm::names;
using Catch::Matchers::Contains;

namespace {

// Tries every length, the shortest first.
bool tried(std::string_view pattern, std::string_view name, std::vector<std::string>& stars) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*')
    return !name.empty() && name[0] == pattern[0] && tried(pattern.substr(1), name.substr(1), stars);
  const bool any = pattern.starts_with("**");
  for (size_t n = 1; n <= name.size() && (any || name[n - 1] != '.'); ++n) {
    stars.emplace_back(name.substr(0, n));
    if (tried(pattern.substr(any ? 2 : 1), name.substr(n), stars)) return true;
    stars.pop_back();
  }
  return false;
}

// All words of up to `length` letters.
std::vector<std::string> words(const std::string& letters, size_t length) {
  std::vector<std::string> all = {""};
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].size() < length)
      for (char c : letters) all.push_back(all[i] + c);
  return all;
}

}  // namespace

TEST_CASE("name patterns: the same as trying every length, for all short ones") {
  int fitting = 0;
  const std::vector<std::string> names = words("ab.", 5);
  for (const std::string& pattern : words("ab*.", 6))
    for (const std::string& name : names) {
      std::vector<std::string> found = {"before"}, expected = {"before"};
      const bool fits = matches(pattern, name, found), should = tried(pattern, name, expected);
      fitting += fits;
      if (fits != should || found != expected) FAIL(pattern << " against " << name);
    }
  CHECK(fitting > 1000);
}

TEST_CASE("name patterns: stars are filled in order, and a name must fill all of them") {
  CHECK(filled("h.*.attn.**", {"3", "a.b"}) == "h.3.attn.a.b");
  CHECK(filled("**|*", {"1", "2", "not asked for"}) == "1|2");
  CHECK(count_stars("***.a.*") == 3);
  CHECK_THROWS_WITH(filled("*.**", {"1"}), Contains("'*.**' has more stars"));
}

TEST_CASE("name patterns: a long name takes no longer than it is long") {
  std::vector<std::string> stars;
  std::string name(100000, 'a');
  CHECK_FALSE(matches("*a*a*a*a*a*b", name, stars));
  CHECK_FALSE(matches("**c*a**a*c", name, stars));
  CHECK(stars.empty());
  name.back() = 'b';
  CHECK(matches("*a*a*b", name, stars));
  CHECK(stars.size() == 3);
}
