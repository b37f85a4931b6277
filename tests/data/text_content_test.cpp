// A text is told from token ids and from files that have to be unpacked first, by its first bytes.
#include "io/data/text_content.h"

#include "tests/support/catch.h"
#include "tests/support/gzip.h"

using namespace isonorm;
using namespace isonorm::data;
using Catch::Matchers::Contains;
using namespace std::string_literals;

namespace {

TextContent content_of(const std::string& bytes, const std::string& name = "file") {
  return text_content(memory_bytes(bytes, name));
}

std::string ids(const std::vector<uint32_t>& all, int width) {
  std::string bytes;
  for (uint32_t id : all)
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(uint64_t{id} >> 8 * i);
  return bytes;
}

// Ids like those of a text: frequent ones are small.
std::vector<uint32_t> like_a_text(int64_t count, uint32_t vocab) {
  std::vector<uint32_t> all;
  uint64_t state = 88172645463325252u;
  for (int64_t i = 0; i < count; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double u = static_cast<double>(state >> 11) * 0x1p-53;
    all.push_back(static_cast<uint32_t>(u * u * u * vocab));
  }
  return all;
}

}  // namespace

TEST_CASE("text content: texts of several encodings are texts") {
  const std::string many(300, 'a');
  for (const std::string& bytes : std::vector<std::string>{
           std::string(), std::string("a"), std::string("Tab\tand end\r\n, a page\f\n"),
           std::string("\xef\xbb\xbf with a mark"),
           std::string("na\xefve caf\xe9, \x93quoted\x94 in Windows-1252"),                          // Latin-1
           std::string("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe6\x96\x87\xe7\xab\xa0"),  // UTF-8
           std::string("\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd"),                          // Shift-JIS
           std::string("\xd0\x9f\xd1\x80\xd0\xb8"), "\x01" + many, "colour: \x1b[31m"s, "GIF89a PK BZh PAR1"s}) {
    INFO(bytes);
    const TextContent c = content_of(bytes);
    CHECK((c.text && c.format.empty()));
  }
}

TEST_CASE("text content: NUL bytes and control characters are no text, and the error can name them") {
  CHECK(content_of("abc"s + '\0' + "d").why == "it has a NUL byte at position 3");
  CHECK(content_of("ab\x01").why == "it has control characters, the first, 1, at position 2");
  for (uint32_t vocab : {65u, 512u, 701u, 32000u, 50257u, 65536u})
    for (int64_t count : {200, 5000}) {
      const TextContent c = content_of(ids(like_a_text(count, vocab), 2));
      INFO(vocab << ' ' << count);
      CHECK((!c.text && c.format.empty()));
      CHECK(!looks_like_u32(memory_bytes(ids(like_a_text(count, vocab), 2), "u16")));
      CHECK(looks_like_u32(memory_bytes(ids(like_a_text(count, vocab), 4), "u32")));
      CHECK(!content_of(ids(like_a_text(count, 128256), 4)).text);
    }
  // Evenly drawn ids have no text either; only the first MiB is looked at.
  std::vector<uint32_t> even;
  for (uint32_t i = 0; i < 4000; ++i) even.push_back(i * 2654435761u % 50257);
  CHECK(!content_of(ids(even, 2)).text);
  CHECK(content_of(std::string(size_t{1} << 20, 'a') + '\0').text);
  CHECK(!content_of(std::string((size_t{1} << 20) - 1, 'a') + '\0').text);
}

TEST_CASE("text content: u32 is told from u16 by at least 8 ids whose upper halves are 0, and not by zeros alone") {
  CHECK(looks_like_u32(memory_bytes(ids({1, 2, 3, 4, 5, 6, 7, 8}, 4), "x")));
  CHECK_FALSE(looks_like_u32(memory_bytes(ids({1, 2, 3, 4, 5, 6, 7}, 4), "x")));
  CHECK_FALSE(looks_like_u32(memory_bytes(ids({1, 2, 3, 4, 5, 6, 7, 65536}, 4), "x")));
  CHECK_FALSE(looks_like_u32(memory_bytes(std::string(64, '\0'), "x")));
  CHECK_FALSE(looks_like_u32(memory_bytes(ids({1, 2, 3, 4, 5, 6, 7, 8}, 4) + "ab", "x")));
}

TEST_CASE("text content: files that have to be unpacked are named, with the command") {
  const auto utf16 = [](const std::u16string& s, bool big) {
    std::string bytes;
    for (char16_t c : s) {
      const char low = static_cast<char>(c & 255), high = static_cast<char>(c >> 8);
      bytes += {big ? high : low, big ? low : high};
    }
    return bytes;
  };
  const std::u16string latin = u"A text of more than sixteen letters, caf\u00e9.\r\n",
                       japanese = u"\u65e5\u672c\u8a9e\u306e";
  const std::vector<uint8_t> words(40, 'a'), packed = gzip(words);
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {std::string(packed.begin(), packed.end()), "compressed by gzip", "zcat FILE > TEXT"},
      {"BZh91AY&SY\0\0"s, "compressed by bzip2", "bzcat FILE"},
      {"\xfd"
       "7zXZ\0\0\4"s,
       "compressed by xz", "xzcat FILE"},
      {"\x28\xb5\x2f\xfd\0\1"s, "compressed by zstd", "zstdcat FILE"},
      {"PK\3\4\24\0\0\0"s, "a zip archive", "unzip -p FILE"},
      {"\x93NUMPY\1\0v\0"s, "an array of numpy", "numpy.load"},
      {utf16(u'\ufeff' + latin, false), "encoded in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > TEXT"},
      {utf16(u'\ufeff' + latin, true), "encoded in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > TEXT"},
      {utf16(u'\ufeff' + japanese, false), "encoded in UTF-16", "iconv -f UTF-16 "},
      {utf16(latin, false), "encoded in UTF-16LE", "iconv -f UTF-16LE "},
      {utf16(latin, true), "encoded in UTF-16BE", "iconv -f UTF-16BE "}};
  for (const auto& [bytes, format, command] : cases) {
    const TextContent c = content_of(bytes);
    INFO(format);
    CHECK(!c.text);
    CHECK(c.format == format);
    CHECK_THAT(c.command, Contains(command));
  }
  CHECK_THAT(content_of("{\"text\": \"a\"}\n", "a.jsonl").command, Contains("json.loads(line)[\"text\"]"));
  CHECK_THAT(content_of("id,text\n1,a\n", "a.csv").command, Contains("csv.DictReader"));
  CHECK(content_of("id,text\n1,a\n", "csv").format.empty());
}

TEST_CASE("text content: 8-byte integers are recognised by their zeros, from 8 integers on") {
  for (const std::vector<uint32_t>& all :
       {std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8}, like_a_text(300, 701), like_a_text(300, 128256)}) {
    const TextContent c = content_of(ids(all, 8));
    CHECK((c.format == "an array of 8-byte integers" && c.holds_ids));
    CHECK_THAT(c.command, Contains("numpy.fromfile(sys.argv[1], \"i8\")"));
    CHECK(content_of(ids(all, 4)).format.empty());
  }
  CHECK(content_of(ids({1, 2, 3, 4, 5, 6, 7}, 8)).format.empty());
  CHECK(content_of(ids({1, 2, 3, 4, 5, 6, 7, 8}, 8) + "abcd").format.empty());
  CHECK(content_of(std::string(800, '\0')).format.empty());
}

TEST_CASE("text content: UTF-32, tables by what separates their columns, and archives by their first file") {
  CHECK_THAT(content_of("\xff\xfe\0\0a\0\0\0"s).command, Contains("iconv -f UTF-32 "));
  CHECK_THAT(content_of("\0\0\xfe\xff\0\0\0a"s).command, Contains("iconv -f UTF-32 "));
  CHECK_THAT(content_of("id;text\n1;a, b, c\n", "a.csv").command, Contains("delimiter=\";\""));
  CHECK_THAT(content_of("id\ttext\n1\ta\n", "a.tsv").command, Contains("delimiter=\"\\t\""));
  CHECK(content_of("text\na\n", "A.CSV").format == "a table");
  CHECK(content_of("{\"text\": \"a\"}\n", "A.JsonL").format == "lines of JSON");
  CHECK_THAT(content_of("text\na\n", "a.csv").command, Contains("delimiter=\",\""));
  const std::string header = "PK\3\4"s + std::string(26, '\0');
  CHECK(content_of(header + "a/data.pkl").format == "a file of torch.save");
  CHECK_THAT(content_of(header + "[Content_Types].xml").command, Contains("pandoc -t plain FILE > TEXT"));
  CHECK(content_of(header + "a.txt").format == "a zip archive");
}

TEST_CASE("text content: without_mark() drops one UTF-8 byte order mark at the beginning") {
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string& rest : {""s, "a"s, "a text"s, mark + "a"}) {
    const std::string marked = mark + rest;
    CHECK(without_mark(marked) == rest);
    const Bytes bytes = without_mark(memory_bytes(marked, "x"));
    CHECK(bytes.name == "x");
    const std::vector<uint8_t> all = read_all(bytes, 100);
    CHECK(std::string(all.begin(), all.end()) == rest);
  }
  for (const std::string& plain : {""s, "ab"s, "a" + mark, "\xef\xbb"s}) {
    CHECK(without_mark(plain) == plain);
    CHECK(without_mark(memory_bytes(plain, "x")).size == std::ssize(plain));
  }
}
