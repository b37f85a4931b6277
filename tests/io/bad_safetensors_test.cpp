// Hostile safetensors files: each is refused with a message that names the fault, without a large allocation.
#include <cstring>

#include "core/memory/allocator.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

struct Case {
  std::string header;
  size_t data;  // bytes after the header
  const char* says;
};

std::string file_of(const std::string& header, size_t data, int64_t claimed = -1) {
  const uint64_t n = claimed < 0 ? header.size() : static_cast<uint64_t>(claimed);
  std::string s(8, '\0');
  std::memcpy(s.data(), &n, 8);
  return s + header + std::string(data, '\1');
}

TensorMap parse(const std::string& s) { return load_safetensors(memory_bytes(s, "x")); }

// {"t":{"dtype":D,"shape":S,"data_offsets":O}}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return text(R"({"t":{"dtype":)", dtype, R"(,"shape":)", shape, R"(,"data_offsets":)", offsets, "}}");
}
std::string f32(const std::string& name, int64_t n, int64_t begin, int64_t end) {
  return text('"', name, R"(":{"dtype":"F32","shape":[)", n, R"(],"data_offsets":[)", begin, ',', end, "]}");
}

std::string object(const std::vector<std::string>& members) {
  std::string s = "{";
  for (const std::string& m : members) s += text(s.size() > 1 ? "," : "", m);
  return s += '}';
}

void refused(const std::string& what, const std::string& file, const char* says) {
  INFO(what);
  CHECK_THROWS_WITH(parse(file), Contains(says) && (Catch::StartsWith("x: ") || Catch::StartsWith("x.'t': ")));
}
void refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) refused(c.header.substr(0, 100), file_of(c.header, c.data), c.says);
}

}  // namespace

TEST_CASE("safetensors: the file frame is checked") {
  const std::string good = object({f32("a", 2, 0, 8)});
  CHECK(parse(file_of(good, 8)).at("a").numel() == 2);
  CHECK(parse(file_of("{}", 0)).empty());
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  refused("empty file", "", "0 bytes, shorter than the length of a header");
  refused("seven bytes", std::string(7, '\0'), "7 bytes, shorter");
  refused("header length 0", file_of("", 0), "does not start with '{'");
  refused("header cut off", file_of(good, 0).substr(0, 20), "the header has");
  refused("header length one too long", file_of(good, 0, static_cast<int64_t>(good.size()) + 1), "the file");
  refused("header length over the limit", file_of(good, 8, kSafetensorsHeaderLimit + 1), "over the limit of 100000000");
  refused("header length 2^63 - 1", file_of(good, 8, INT64_MAX), "over the limit");
  refused("header length all ones", std::string(8, '\xff') + good, "has 18446744073709551615 bytes, over the limit");
  refused("a limit's worth of header in 20 bytes", file_of(good, 8, kSafetensorsHeaderLimit), "the file");
  refused("header length too short", file_of(good, 8, static_cast<int64_t>(good.size()) - 1), "json: ");
  refused("white space first", file_of(" " + good, 8), "does not start with '{'");
  refused("byte order mark first", file_of("\xef\xbb\xbf" + good, 8), "does not start with '{'");
  refused("a list", file_of("[]", 0), "does not start with '{'");
  refused("one byte of data missing", file_of(good, 7), "ends at 8, the data at 7");
  refused("one byte of data too many", file_of(good, 9), "1 bytes after the last tensor");
  refused("data without tensors", file_of("{}", 5), "5 bytes after the last tensor");
  CHECK(host_allocator().stats().peak - before < 4096);
}

TEST_CASE("safetensors: the JSON is strict") {
  refused({
      {"{", 0, "json: byte 1: unexpected end of input; expected string literal"},
      {"{}}", 0, "json: byte 2: unexpected '}'; expected end of input"},
      {"{}{}", 0, "expected end of input"},
      {std::string("{}\0", 3), 0, "json: byte 2: expected no byte 0"},
      {"{,}", 0, "unexpected ','; expected string literal"},
      {text("{", f32("a", 1, 0, 4), ",}"), 4, "unexpected '}'; expected string literal"},
      {"{a:1}", 0, "invalid literal"},
      {"{'a':1}", 0, "invalid literal"},
      {R"({"t" 1})", 0, "unexpected number literal; expected ':'"},
      {R"({"t":1})", 0, "json: byte 7: expected '{', found a whole number"},
      {R"({"t":null})", 0, "json: byte 9: expected '{', found null"},
      {R"({"t":[]})", 0, "expected '{', found '['"},
      {R"({"t":{"t":{"t":{}}}})", 0, "unknown key 't'"},
      {text("{\"t\":", std::string(100000, '[')), 0, "expected '{'"},
      {text(R"({"t":{"shape":)", std::string(100000, '[')), 0, "expected a whole number"},
      {"/**/{}", 0, "does not start"},
      {"{/**/}", 0, "invalid literal"},
      {R"({"t)", 0, "json: byte 3: invalid string: missing closing quote"},
      {"{\"t\n\":{}}", 0, "invalid string: control character U+000A"},
      {std::string("{\"t\0\":{}}", 9), 0, "json: byte 3: expected no byte 0"},
      {R"({"\x":{}})", 0, "forbidden character after backslash"},
      {R"({"\u12g4":{}})", 0, "must be followed by 4 hex digits"},
      {R"({"\u12)", 0, "must be followed by 4 hex digits"},
      {R"({"\ud800":{}})", 0, "must be followed by U+DC00..U+DFFF"},
      {R"({"\ud800\u0041":{}})", 0, "must be followed by U+DC00..U+DFFF"},
      {R"({"\udc00":{}})", 0, "must follow U+D800..U+DBFF"},
      {"{\"\x80\":{}}", 0, "ill-formed UTF-8 byte"},
      {"{\"\xc0\xaf\":{}}", 0, "ill-formed UTF-8 byte"},          // overlong '/'
      {"{\"\xe0\x80\xaf\":{}}", 0, "ill-formed UTF-8 byte"},      // overlong
      {"{\"\xed\xa0\x80\":{}}", 0, "ill-formed UTF-8 byte"},      // surrogate
      {"{\"\xf4\x90\x80\x80\":{}}", 0, "ill-formed UTF-8 byte"},  // beyond U+10FFFF
      {"{\"\xf0\x80\x80\x80\":{}}", 0, "ill-formed UTF-8 byte"},  // overlong
      {"{\"\xe2\x82", 0, "ill-formed UTF-8 byte"},                // cut off
  });
}

TEST_CASE("safetensors: entries are complete, unique and of a known kind") {
  const std::string a = f32("a", 1, 0, 4);
  refused({
      {object({a, a}), 4, "'a' is there twice"},
      {text("{", a, R"(,"\u0061":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})"), 4, "'a' is there twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "'__metadata__' is there twice"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "metadata have 'k' twice"},
      {R"({"__metadata__":{"k":1}})", 0, "expected a string, found a whole number"},
      {R"({"__metadata__":{"k":{}}})", 0, "expected a string, found '{'"},
      {R"({"__metadata__":[]})", 0, "expected '{'"},
      {R"({"__metadata__":null})", 0, "expected '{'"},
      {R"({"t":{}})", 0, "'t' has no dtype"},
      {R"({"t":{"dtype":"F32","data_offsets":[0,0]}})", 0, "'t' has no shape"},
      {R"({"t":{"dtype":"F32","shape":[0]}})", 0, "'t' has no data_offsets"},
      {R"({"t":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0, "'t' has 'dtype' twice"},
      {R"({"t":{"dtype":"F32","shape":[0],"shape":[0],"data_offsets":[0,0]}})", 0, "'t' has 'shape' twice"},
      {R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"data_offsets":[0,0]}})", 0, "has 'data_offsets' twice"},
      {R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"more":1}})", 0, "unknown key 'more'"},
      {one(R"("F16")", "[1]", "[0,2]"), 2, "'t' has dtype 'F16', expected F32"},
      {one(R"("BOOL")", "[1]", "[0,1]"), 1, "'t' has dtype 'BOOL'"},
      {one(R"("F4")", "[2]", "[0,1]"), 1, "'t' has dtype 'F4', expected F32, F64, BF16, I64, U8, BOOL, I8, F8_E4M3, "},
      {one(R"("F8_E4M3")", "[1]", "[0,1]"), 1, "'t' has dtype 'F8_E4M3'"},
      {one(R"("f32")", "[1]", "[0,4]"), 4, "'t' has dtype 'f32'"},
      {one(R"("")", "[1]", "[0,4]"), 4, "'t' has dtype '', expected"},
      {one("32", "[1]", "[0,4]"), 4, "expected a string"},
      {one(R"("F32")", "1", "[0,4]"), 4, "expected '['"},
      {one(R"("F32")", R"(["1"])", "[0,4]"), 4, "whole number"},
      {one(R"("F32")", "[1,]", "[0,4]"), 4, "unexpected ']'"},
      {one(R"("F32")", "[1 1]", "[0,4]"), 4, "unexpected number literal; expected ']'"},
      {one(R"("F32")", "[-1]", "[0,4]"), 4, "whole number, found a negative number"},
      {one(R"("F32")", "[+1]", "[0,4]"), 4, "invalid literal"},
      {one(R"("F32")", "[1.0]", "[0,4]"), 4, "whole number, found a number with a fraction"},
      {one(R"("F32")", "[1e0]", "[0,4]"), 4, "whole number, found a number with a fraction"},
      {one(R"("F32")", "[01]", "[0,4]"), 4, "unexpected number literal; expected ']'"},
      {one(R"("F32")", "[00]", "[0,0]"), 0, "unexpected number literal; expected ']'"},
      {one(R"("F32")", "[NaN]", "[0,4]"), 4, "invalid literal"},
      {one(R"("F32")", "[true]", "[0,4]"), 4, "whole number"},
      {one(R"("F32")", "[9223372036854775808]", "[0,4]"), 4, "or beyond 2^63"},
      {one(R"("F32")", "[18446744073709551617]", "[0,4]"), 4, "or beyond 2^63"},
      {one(R"("F32")", text("[", std::string(100000, '9'), "]"), "[0,4]"), 4, "number overflow"},
      {one(R"("F32")", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "'t' has more than 8 dimensions"},
      {one(R"("F32")", "[1]", "[]"), 4, "'t' has 0 data_offsets, expected two"},
      {one(R"("F32")", "[1]", "[0]"), 4, "'t' has 1 data_offsets, expected two"},
      {one(R"("F32")", "[1]", "[0,4,8]"), 8, "'t' has more than two data_offsets"},
      {one(R"("F32")", "[1]", "[-4,0]"), 4, "whole number"},
      {one(R"("F32")", "[1]", R"({"a":1})"), 4, "expected '['"},
  });
}

TEST_CASE("safetensors: shapes, sizes and places agree") {
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  refused({
      {one(R"("F32")", "[2]", "[0,4]"), 4, "takes 8 bytes, its place has 4"},
      {one(R"("F32")", "[1]", "[0,8]"), 8, "takes 4 bytes, its place has 8"},
      {one(R"("BF16")", "[3]", "[0,12]"), 12, "takes 6 bytes, its place has 12"},
      {one(R"("F32")", "[]", "[0,0]"), 0, "takes 4 bytes, its place has 0"},
      {one(R"("F32")", "[0]", "[0,4]"), 4, "takes 0 bytes, its place has 4"},
      {one(R"("F32")", "[1]", "[4,0]"), 4, "begins at 4 and ends at 0"},
      {one(R"("F32")", "[1]", "[0,9223372036854775807]"), 4, "ends at 9223372036854775807, the data at 4"},
      {one(R"("F32")", "[1]", "[9223372036854775804,9223372036854775807]"), 4, "ends at 9223372036854775807"},
      {one(R"("U8")", "[4294967296,4294967296]", "[0,0]"), 0, "passes the largest size"},     // 2^64
      {one(R"("U8")", "[4611686018427387904,4]", "[0,0]"), 0, "passes the largest size"},     // 2^64
      {one(R"("F64")", "[2305843009213693952]", "[0,0]"), 0, "passes the largest size"},      // x 8 = 2^64
      {one(R"("F32")", "[3,4294967296,1431655766]", "[0,8]"), 8, "passes the largest size"},  // wraps to a small number
      {one(R"("U8")", "[9223372036854775807,2]", "[0,0]"), 0, "passes the largest size"},
      {one(R"("F32")", "[1000000000,1000]", "[0,4000000000000]"), 8, "the data at 8"},  // 4 TB in 8 bytes
      {object({f32("a", 1, 0, 4), f32("b", 1, 0, 4)}), 4, "'b' begins at 0, inside of the one before"},
      {object({f32("a", 2, 0, 8), f32("b", 2, 4, 12)}), 12,
       "'b' begins at 4, inside of the one before, which ends at 8"},
      {object({f32("a", 2, 4, 12), f32("b", 2, 0, 8)}), 12, "'a' begins at 4, inside of the one before"},
      {object({f32("a", 3, 0, 12), f32("b", 1, 4, 8)}), 12, "'b' begins at 4, inside"},
      {object({f32("a", 2, 0, 8), f32("b", 0, 4, 4)}), 8, "'b' begins at 4, inside"},
      {object({f32("a", 1, 0, 4), f32("b", 1, 8, 12)}), 12, "nothing lies in the bytes 4 to 8 before tensor 'b'"},
      {object({f32("a", 1, 4, 8)}), 8, "nothing lies in the bytes 0 to 4"},
      {object({f32("a", 0, 4, 4)}), 4, "nothing lies in the bytes 0 to 4"},
      {object({f32("a", 1, 0, 4)}), 8, "4 bytes after the last tensor"},
  });
  CHECK(host_allocator().stats().peak - before < 4096);
  // Legal and rare: an empty tensor whose other sizes would overflow every limit; data in another order than the names.
  CHECK(parse(file_of(one(R"("F32")", "[4611686018427387904,0,4611686018427387904]", "[0,0]"), 0)).at("t").numel() ==
        0);
  CHECK(parse(file_of(object({f32("a", 1, 4, 8), f32("e", 0, 4, 4), f32("b", 1, 0, 4)}) + " \n\t", 8)).size() == 3);
}

TEST_CASE("safetensors: a header of many tensors is read in linear time") {
  std::vector<std::string> members;
  for (int i = 0; i < 100000; ++i) members.push_back(f32(std::to_string(i), 0, 0, 0));
  CHECK(parse(file_of(object(members), 0)).size() == 100000);
}

TEST_CASE("safetensors: files that cannot be read") {
  const TempFolder f;
  CHECK_THROWS_WITH(load_safetensors(f / "none"), Contains("none: cannot open: No such file"));
  CHECK_THROWS_WITH(load_safetensors(f.path.string()), Contains("not a regular file"));
  try {
    load_safetensors(f / "none");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
  }
  Bytes shrinks = memory_bytes("", "x");
  shrinks.size = 8;  // a file that is truncated after it was opened
  CHECK_THROWS_WITH(load_safetensors(shrinks), Contains("the file has only"));
}

TEST_CASE("json: escapes and UTF-8") {
  const auto read = [](const std::string& s) {
    std::string t;
    io::read_json(s, {.string = [&](const std::string& value) { t = value; }});
    return t;
  };
  CHECK(read(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
  CHECK(read(R"("\u0041\u00e4\u20AC\ud83d\ude00")") == "A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(read("\"\xc3\xa4\xe2\x82\xac\xed\x9f\xbf\xf4\x8f\xbf\xbf\x7f\"") ==
        "\xc3\xa4\xe2\x82\xac\xed\x9f\xbf\xf4\x8f\xbf\xbf\x7f");
  CHECK(read(R"("\u0000")") == std::string(1, '\0'));
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  std::string written;
  io::append_json_string(written, all, "t");
  CHECK(read(written) == all);
  try {  // the part of a hostile text that a message shows is limited
    read(text('"', std::string(100000, 'a'), "\x80"));
    FAIL("bytes that are not UTF-8 were read");
  } catch (const Error& e) {
    CHECK_THAT(e.what(), Contains("json: byte 100001: invalid string: ill-formed UTF-8 byte") && Contains("\\x80"));
    CHECK(std::strlen(e.what()) < 400);
  }
}

TEST_CASE("safetensors: files of other formats are called by their names") {
  refused("torch.save", "PK\3\4" + std::string("\0\0\x8\x8 archive/data.pkl", 20),
          "a zip archive, as torch.save writes");
  refused("pickle", "\x80\2}q\1(X\3 ", "a Python pickle");
  refused("index of shards", R"({"metadata": {"total_size": 8}, "weight_map": {}})", "JSON, such as the index");
}

TEST_CASE("safetensors: a sparse file that is larger than the memory is bad input, not a lack of memory") {
  const TempFolder f;
  const int64_t bytes = int64_t{1} << 43;  // 8 TiB, but sparse: no room on the disk
  const std::string header =
      object({text(R"("t":{"dtype":"U8","shape":[)", bytes, R"(],"data_offsets":[0,)", bytes, "]}")});
  write_text(f / "s", file_of(header, 0));
  std::error_code failed;
  std::filesystem::resize_file(f / "s", 8 + header.size() + static_cast<uint64_t>(bytes), failed);
  if (failed) return;  // the file system does not allow files of this size
  const auto kind = [](auto&& read) {
    try {
      read();
    } catch (const Error& e) {
      CHECK_THAT(e.what(), Contains(text(" takes ", int64_t{1} << 43, " bytes, this machine has ")));
      return e.kind();
    }
    return ErrorKind::memory;
  };
  CHECK(kind([&] { load_safetensors(f / "s"); }) == ErrorKind::invalid);
  const SafetensorsFile file(f / "s");
  CHECK(kind([&] { file.read(file.entries()[0]); }) == ErrorKind::invalid);
}
