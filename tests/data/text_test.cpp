// Text as tokens.
#include "io/data/text.h"

#include <set>

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {
data::Text make(const std::string& s, uint64_t seed = 0, double held_out = 0) {
  return data::Text(memory_bytes(s, "t"), seed, held_out);
}
}  // namespace

TEST_CASE("text: the vocabulary is the sorted set of bytes") {
  const auto t = make("banana\n\xc3\xa4\0x");
  CHECK(t.vocab() == 6);  // \n a b n \xc3 \xa4, ascending: \n a b n \xa4 \xc3
  CHECK(t.encode("\nabn\xa4\xc3").to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(t.decode(t.encode("nab\xc3\xa4")) == "nab\xc3\xa4");
  CHECK(t.encode("").numel() == 0);
  CHECK_THROWS_WITH(t.encode("anx"), Contains("byte 120 at position 2"));
  CHECK_THROWS_WITH(t.decode(tensor({int64_t{6}})), Contains("token 6, expected 0 to 5"));
  CHECK_THROWS_WITH(t.decode(tensor({int64_t{-1}})), Contains("token -1"));
  CHECK_THROWS_WITH(t.decode(tensor({1.f})), Contains("f32"));
}

TEST_CASE("text: the ids of an alphabet that is given, whichever bytes occur") {
  const data::Alphabet alphabet("xyzab");
  const std::string s = "abba";
  const data::Text t(memory_bytes(s, "t"), 0, 0, alphabet);
  CHECK(t.vocab() == 5);
  CHECK(t.batch(1, 3, 0).x.to_vector<int64_t>() == std::vector<int64_t>{3, 4, 4});
  CHECK(data::Alphabet::read(alphabet.written()) == alphabet);
  CHECK(data::Alphabet("\n\xff").written() == "0aff");
  const std::string other = "abbqa";
  CHECK_THROWS_WITH(data::Text(memory_bytes(other, "t"), 0, 0, alphabet),
                    Contains("t: byte 113 at position 3 is none of the 5 bytes"));
  for (const char* damaged : {"0", "0g", "0A", "0a0a"})
    CHECK_THROWS_WITH(data::Alphabet::read(damaged), Contains("alphabet"));
  CHECK_THROWS_WITH(data::Alphabet::read(std::string(514, '0')), Contains("at most 256"));
}

TEST_CASE("text: a file of token ids gives the same windows as its tokens as bytes; invalid ids are refused") {
  const TempFolder f;
  std::string s;
  for (int64_t i = 0; i < 70'000; ++i) s += static_cast<char>(i * i % 251);
  const auto bytes_text = make(s, 3, 0.1);
  const std::vector<int64_t> tokens = bytes_text.encode(s).to_vector<int64_t>();
  for (const int64_t vocab : {int64_t{1} << 16, (int64_t{1} << 16) + 1}) {
    std::string bytes;
    for (int64_t token : tokens)
      for (int64_t id = token, i = 0; i < (vocab > 1 << 16 ? 4 : 2); ++i, id >>= 8) bytes += static_cast<char>(id);
    write_text(f / "ids", bytes);
    const data::Text ids(data::TokenFile{f / "ids", vocab}, 3, 0.1);
    CHECK(ids.vocab() == vocab);
    CHECK(ids.length() == 70'000);
    CHECK(ids.batch(4, 50, 7).y.to_vector<int64_t>() == bytes_text.batch(4, 50, 7).y.to_vector<int64_t>());
    CHECK(ids.held_out_rows(1, 2, 9).x.to_vector<int64_t>() ==
          bytes_text.held_out_rows(1, 2, 9).x.to_vector<int64_t>());
    CHECK_THROWS_WITH(ids.encode("a"), Contains("token ids"));
    CHECK_THROWS_WITH(ids.decode(tensor({int64_t{1}})), Contains("token ids"));
    write_text(f / "cut", bytes + "a");
    CHECK_THROWS_WITH(data::Text(data::TokenFile{f / "cut", vocab}), Contains("cut: the file has"));
  }
  write_text(f / "high", std::string(2 * 65'536, '\0') + "\x01\x01\x05\x02");
  CHECK_THROWS_WITH(data::Text(data::TokenFile{f / "high", 517}),
                    Contains("high: token 65537, read as u16, is 517, expected 0 to 516"));
  CHECK_NOTHROW(data::Text(data::TokenFile{f / "high", 518}));
  write_text(f / "none", "");
  CHECK_THROWS_WITH(data::Text(data::TokenFile{f / "none", 5}), Contains("is empty"));
  CHECK_THROWS_WITH(data::Text(data::TokenFile{f / "ids", 0}), Contains("a vocabulary of 0"));
}

TEST_CASE("text: windows lie in the text and y follows x") {
  std::string s;
  for (int i = 0; i < 256; ++i) s += static_cast<char>(i);  // token = position
  const auto t = make(s, 9);
  std::set<int64_t> starts;
  for (int64_t step = 0; step < 200; ++step) {
    const auto [x, y] = t.batch(4, 250, step);
    REQUIRE(x.shape() == Dims{4, 250});
    REQUIRE(y.shape() == Dims{4, 250});
    const auto a = x.to_vector<int64_t>(), b = y.to_vector<int64_t>();
    for (int r = 0; r < 4; ++r) starts.insert(a[r * 250]);
    bool consecutive = true;
    for (int i = 0; i < 1000; ++i) consecutive &= b[i] == a[i] + 1 && a[i] == a[i / 250 * 250] + i % 250;
    CHECK(consecutive);
  }
  CHECK(starts == std::set<int64_t>{0, 1, 2, 3, 4, 5});  // every place, and none beyond
}

TEST_CASE("text: a batch depends on seed and step only") {
  const std::string s = "the quick brown fox jumps over the lazy dog";
  const auto a = make(s, 1), b = make(s, 1), other = make(s, 2);
  const auto x = [](const data::Text& t, int64_t step) { return t.batch(8, 10, step).x.to_vector<int64_t>(); };
  const auto last = x(a, 5);
  CHECK(x(a, 4) != last);
  CHECK(x(b, 5) == last);
  CHECK(x(other, 5) != last);
}

TEST_CASE("text: the held-out part appears only in held_out_rows") {
  std::string s;
  for (int i = 0; i < 200; ++i) s += static_cast<char>(i);  // token = position
  const data::Text t = make(s, 3, 0.1);
  CHECK(t.length() == 200);
  CHECK(t.held_out_length() == 20);
  std::set<int64_t> seen;
  for (int64_t step = 0; step < 500; ++step) {
    const auto [x, y] = t.batch(4, 7, step);
    for (int64_t v : x.to_vector<int64_t>()) seen.insert(v);
    for (int64_t v : y.to_vector<int64_t>()) seen.insert(v);
  }
  CHECK(seen.size() == 180);
  CHECK(*seen.rbegin() == 179);

  REQUIRE(t.held_out_windows(6) == 3);  // 180 to 186, 186 to 192, 192 to 198
  const auto [x, y] = t.held_out_rows(1, 2, 6);
  CHECK(x.shape() == Dims{2, 6});
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197});
  CHECK(y.to_vector<int64_t>() == std::vector<int64_t>{187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197, 198});
  CHECK(t.held_out_windows(19) == 1);
  CHECK(t.held_out_windows(20) == 0);
  REQUIRE(t.all_held_out_windows(6) == 4);  // 198 to 199, filled up
  const auto [rest, next] = t.held_out_rows(2, 2, 6);
  CHECK(rest.to_vector<int64_t>() == std::vector<int64_t>{192, 193, 194, 195, 196, 197, 198, 0, 0, 0, 0, 0});
  CHECK(next.to_vector<int64_t>() ==
        std::vector<int64_t>{193, 194, 195, 196, 197, 198, 199, -100, -100, -100, -100, -100});
  CHECK((t.all_held_out_windows(19) == 1 && t.all_held_out_windows(20) == 1));
  CHECK_THROWS_WITH(t.held_out_rows(3, 2, 6), Contains("2 windows from 3 on, the held-out part has 4"));
  CHECK_THROWS_WITH(t.held_out_rows(-1, 1, 6), Contains("from -1 on"));
  CHECK_THROWS_WITH(t.batch(1, 180, 0), Contains("the text has 180 and 20 held out"));
  CHECK(make(s).held_out_windows(1) == 0);
  CHECK_THROWS_WITH(make(s, 3, 1.5), Contains("the part 1.5, expected 0 to 1"));
  CHECK(make(s, 3, 1).held_out_length() == 200);
}

TEST_CASE("text: bad input") {
  const TempFolder f;
  write_text(f / "empty", "");
  write_text(f / "two", "ab");
  CHECK_THROWS_WITH(data::Text(f / "empty"), Contains("empty: the text is empty"));
  CHECK_THROWS_WITH(data::Text(f / "none"), Contains("none: cannot open"));
  CHECK_THROWS_WITH(data::Text(f.path.string()), Contains("not a regular file"));
  const data::Text t(f / "two");
  CHECK(t.batch(1, 1, 0).y.to_vector<int64_t>() == std::vector<int64_t>{1});
  CHECK_THROWS_WITH(t.batch(1, 2, 0), Contains("length 2") && Contains("the text has 2"));
  CHECK_THROWS_WITH(t.batch(0, 1, 0), Contains("0 rows"));
  CHECK_THROWS_WITH(t.batch(1, 0, 0), Contains("length 0"));
  CHECK_THROWS_WITH(t.batch(1, 1, -1), Contains("step -1"));
  Bytes huge{"huge", data::kTextLimit + 1, nullptr};  // refused before it is read
  CHECK_THROWS_WITH(data::Text(huge), Contains("over the limit"));
}

TEST_CASE("made text: depends on seed and length alone, a longer one begins as a shorter one, few characters") {
  const std::string s = data::made_text(1, 4000);
  CHECK(s.size() == 4000);
  CHECK(s == data::made_text(1, 4000));
  CHECK(s.substr(0, 100) == data::made_text(1, 100));
  CHECK(s != data::made_text(2, 4000));
  CHECK(data::made_text(1, 0).empty());
  CHECK_THROWS_AS(data::made_text(1, -1), Error);
  const std::set<char> characters(s.begin(), s.end());
  CHECK(characters.size() > 15);
  CHECK(characters.size() < 29);
}

TEST_CASE("text: a loader without rows or length says so, in a range-for, too") {
  const data::Text text = make("abcabcabcabc");
  for (const data::RowLoaderOptions& o : {data::RowLoaderOptions{.rows = 0, .length = 4}, {.rows = 2, .length = 0}}) {
    data::TextLoader loader(text, o);
    CHECK_THROWS_AS(
        [&] {
          for (const auto& batch : loader) static_cast<void>(batch);
        }(),
        Error);
  }
}
