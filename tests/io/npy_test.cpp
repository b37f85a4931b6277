// .npy: round trips, files of NumPy, and hostile files.
#include "io/npy.h"

#include "core/memory/allocator.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

std::string npy(const std::string& header, size_t data, char major = 1, char minor = 0, int64_t claimed = -1) {
  const auto n = static_cast<uint64_t>(claimed < 0 ? static_cast<int64_t>(header.size()) : claimed);
  std::string s = "\x93NUMPY";
  s += major;
  s += minor;
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) s += static_cast<char>(n >> (8 * i));
  return s + header + std::string(data, '\1');
}
std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return text("{'descr': ", descr, ", 'fortran_order': ", order, ", 'shape': ", shape, ", }\n");
}
std::string f4(const std::string& shape, size_t data) { return npy(dict("'<f4'", "False", shape), data); }
Tensor parse(const std::string& s) { return load_npy(memory_bytes(s, "x")); }

}  // namespace

TEST_CASE("npy: round trips of every dtype, rank and layout") {
  const TempFolder f;
  const Tensor x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  for (const Tensor& t : {x, from_vector<double>({0.1}, {}), from_vector<int64_t>({INT64_MIN, 7}, {2}),
                          from_vector<uint8_t>({255}, {1, 1, 1}), empty({3, 0, 2}), as_strided(x, {3, 2}, {1, 3}, 0),
                          from_vector<uint8_t>({1, 2}, {1, 1, 1, 1, 1, 1, 1, 2})}) {
    save_npy(f / "a", t);
    CHECK(same_bytes(load_npy(f / "a"), t));
    CHECK(read_bytes(f / "a").size() % 64 == static_cast<size_t>(t.numel() * size_of(t.dtype())) % 64);
  }
  CHECK_THROWS_WITH(save_npy(f / "b", from_vector<bf16>({bf16(1.f)}, {1})),
                    Contains("b: npy: NumPy has no type for bf16"));
  CHECK_FALSE(std::filesystem::exists(f / "b"));
}

TEST_CASE("npy: files of NumPy, byte by byte") {  // tests/fixtures/python_files.py
  const TempFolder f;
  const std::vector<std::pair<std::string, Tensor>> files = {
      {"f4", from_vector<float>({0, 1, 2, 3, 4, 5}, {2, 3})},
      {"f8", from_vector<double>({M_PI}, {})},
      {"i8", from_vector<int64_t>({-1, int64_t{1} << 40}, {2})},
      {"u1", empty({0, 3}, {DType::u8})},
  };
  for (const auto& [name, tensor] : files) {
    const std::string theirs = text("tests/fixtures/python_", name, ".npy");
    CHECK(same_bytes(load_npy(theirs), tensor));
    save_npy(f / name, tensor);
    CHECK(read_bytes(f / name) == read_bytes(theirs));
  }
}

TEST_CASE("npy: variants of a header") {
  CHECK(parse(f4("(2,)", 8)).shape() == Dims{2});
  CHECK(parse(f4("()", 4)).rank() == 0);
  CHECK(parse(f4("(2, 1,)", 8)).shape() == Dims{2, 1});
  CHECK(parse(npy(dict("'<f4'", "False", "(1,)"), 4, 2)).numel() == 1);
  CHECK(parse(npy("{'shape': (1, 2), 'descr':'|u1','fortran_order':False}   \n", 2)).numel() == 2);
  CHECK(parse(f4("(0, 4611686018427387904, 4611686018427387904)", 0)).numel() == 0);
}

TEST_CASE("npy: in Fortran order the first axis is the fastest") {
  const auto bytes = [](const char* shape) { return npy(dict("'|u1'", "True", shape), 0) + "\1\2\3\4\5\6"; };
  CHECK(same_bytes(parse(bytes("(2, 3)")), from_vector<uint8_t>({1, 3, 5, 2, 4, 6}, {2, 3})));
  CHECK(same_bytes(parse(bytes("(1, 3, 2)")), from_vector<uint8_t>({1, 4, 2, 5, 3, 6}, {1, 3, 2})));
  CHECK(same_bytes(parse(bytes("(6,)")), from_vector<uint8_t>({1, 2, 3, 4, 5, 6}, {6})));
}

TEST_CASE("npy: hostile files") {
  const std::string good = f4("(2,)", 8), shape = "'shape': (1,)", order = "'fortran_order': False";
  struct Case {
    std::string bytes;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"", "0 bytes, shorter"},
      {good.substr(0, 9), "9 bytes, shorter"},
      {npy("", 0, 2).substr(0, 11), "11 bytes, shorter"},
      {text("x", good.substr(1)), "does not begin with"},
      {text("\x93NUMPX", good.substr(6)), "does not begin with"},
      {npy(dict("'<f4'", "False", "(2,)"), 8, 3), "version 3.0, expected 1.0 or 2.0"},
      {npy(dict("'<f4'", "False", "(2,)"), 8, 1, 1), "version 1.1"},
      {npy(dict("'<f4'", "False", "(2,)"), 8, 0), "version 0.0"},
      {good.substr(0, 40), "the header has"},
      {npy("{}", 0, 2, 0, 0xffffffff), "has 4294967295 bytes, over the limit"},
      {npy("{}", 0, 2, 0, 1 << 16), "the file 14"},
      {npy("", 0), "expected { at byte 0"},
      {npy("{}", 0), "has no descr"},
      {npy("{'descr': '<f4'}", 0), "has no fortran_order"},
      {npy(text("{'descr': '<f4', ", order, "}"), 0), "has no shape"},
      {npy(text("{'descr': '<f4', 'descr': '<f4', ", order, ", ", shape, "}"), 4), "descr twice"},
      {npy(text("{'descr': '<f4', ", shape, ", ", order, ", ", shape, "}"), 4), "shape twice"},
      {npy(text("{'descr': '<f4', ", order, ", ", shape, ", 'more': 1}"), 4), "a key other than"},
      {npy(text("{'descr': '<f4' ", order, ", ", shape, "}"), 4), "expected }"},
      {npy(text("{'descr': '<f4', ", order, ", ", shape), 4), "expected }"},
      {npy(text("{'descr': '<f4', ", order, ", ", shape, "} {}"), 4), "has text after its end"},
      {npy(text("{\"descr\": '<f4', ", order, ", ", shape, "}"), 4), "expected ' at byte 1"},
      {npy("{'descr", 0), "ends inside of a string"},
      {npy("{'de\nscr': '<f4'}", 0), "byte 10 in a string"},
      {npy(dict("'>f4'", "False", "(1,)"), 4), "type is '>f4', expected <f4"},
      {npy(dict("'<f2'", "False", "(1,)"), 2), "type is '<f2'"},
      {npy(dict("'<i4'", "False", "(1,)"), 4), "type is '<i4'"},
      {npy(dict("'|b1'", "False", "(1,)"), 1), "type is '|b1'"},
      {npy(dict("'|O'", "False", "(1,)"), 1), "type is '|O'"},
      {npy(dict("[('a', '<f4')]", "False", "(1,)"), 4), "expected '"},
      {npy(dict("''", "False", "(1,)"), 4), "type is ''"},
      {npy(dict("'<f4'", "0", "(1,)"), 4), "expected False"},
      {f4("(1)", 4), "no comma"},
      {f4("1", 4), "expected ("},
      {f4("[1]", 4), "expected ("},
      {f4("(1, 1", 4), "expected a size"},
      {f4("(1, 1 1)", 4), "expected , or )"},
      {f4("(,)", 4), "expected a size"},
      {f4("(-1,)", 4), "expected a size"},
      {f4("(1.0,)", 4), "expected ,"},
      {f4("(01,)", 4), "expected a size"},
      {f4("(1L,)", 4), "expected ,"},
      {f4("(1,1,1,1,1,1,1,1,1)", 4), "more than 8 dimensions"},
      {f4("(9223372036854775808,)", 4), "passes the largest size"},
      {f4("(4294967296, 4294967296)", 0), "passes the largest size"},
      {f4("(4611686018427387904,)", 0), "passes the largest size"},
      {f4("(1000000, 1000000)", 4), "take 4000000000000 bytes, the file has 4"},
      {f4("(2,)", 7), "take 8 bytes, the file has 7"},
      {f4("(2,)", 9), "take 8 bytes, the file has 9"},
      {f4("(2,)", 0), "take 8 bytes, the file has 0"},
      {f4("()", 0), "take 4 bytes, the file has 0"},
      {f4("(0,)", 1), "take 0 bytes, the file has 1"},
  };
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  for (const Case& c : cases) {
    INFO(c.bytes.substr(0, 100));
    CHECK_THROWS_WITH(parse(c.bytes), Contains(c.says) && Catch::StartsWith("x: "));
  }
  CHECK(host_allocator().stats().peak - before < 4096);
}
