// Files of flax.serialization: variants of MessagePack, and hostile files. Files written by Flax are read in
// tests/tools/flax_test.cpp.
#include "io/flax_file.h"

#include "core/memory/allocator.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

io::FlaxFile opened(const std::string& s) { return io::FlaxFile(memory_bytes(s, "x")); }

std::string big(uint64_t n, int bytes) {
  std::string s;
  while (bytes > 0) s += static_cast<char>(n >> (8 * --bytes));
  return s;
}
std::string word(const std::string& s) { return big(0xa0 + s.size(), 1) + s; }
std::string map(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string s = big(0x80 + entries.size(), 1);
  for (const auto& [key, value] : entries) s += word(key) + value;
  return s;
}
std::string number(uint64_t n) { return n < 0x80 ? big(n, 1) : "\xcf" + big(n, 8); }
std::string list(const std::vector<uint64_t>& v) {
  std::string s = big(0x90 + v.size(), 1);
  for (uint64_t n : v) s += number(n);
  return s;
}
std::string held(const std::string& bytes) { return "\xc4" + big(bytes.size(), 1) + bytes; }
std::string extension(const std::string& said, int type = 1) {
  return "\xc7" + big(said.size(), 1) + big(static_cast<uint64_t>(type), 1) + said;
}
std::string array(const std::vector<uint64_t>& shape = {2, 3}, const std::string& dtype = "float32",
                  const std::string& bytes = std::string(24, '\1')) {
  return extension("\x93" + list(shape) + word(dtype) + held(bytes));
}
std::string one(const std::string& value) { return map({{"w", value}}); }
std::string chunked(const std::string& shape, const std::string& chunks) {
  return one("\x83\xb9__msgpack_chunked_array__\xc3" + word("shape") + shape + word("chunks") + chunks);
}
const std::string kShape = map({{"0", "\2"}, {"1", "\3"}});

}  // namespace

TEST_CASE("flax: dtypes and the ways to say the same") {
  for (const auto& [name, dtype, foreign] :
       std::vector<std::tuple<std::string, DType, std::string>>{{"float32", DType::f32, ""},
                                                                {"float64", DType::f64, ""},
                                                                {"bfloat16", DType::bf16, ""},
                                                                {"int64", DType::i64, ""},
                                                                {"uint8", DType::u8, ""},
                                                                {"float16", DType::u8, "F16"},
                                                                {"int8", DType::u8, "I8"},
                                                                {"int16", DType::u8, "I16"},
                                                                {"int32", DType::u8, "I32"},
                                                                {"bool", DType::u8, "BOOL"},
                                                                {"uint16", DType::u8, "U16"},
                                                                {"uint32", DType::u8, "U32"},
                                                                {"uint64", DType::u8, "U64"}}) {
    INFO(name);
    const int bits = name == "bool" ? 8 : std::stoi(name.substr(name.find_first_of("0123456789")));
    const std::string bytes = map({{"a", map({{"b", array({3}, name, std::string(bits / 8 * 3, '\1'))}})}});
    const io::FlaxFile file = opened(bytes);
    REQUIRE(file.entries().size() == 1);
    const io::TensorEntry& e = file.entries()[0];
    CHECK(e.name == "a.b");
    CHECK(e.dtype == dtype);
    CHECK(e.foreign == foreign);
    CHECK(file.read(e).numel() * size_of(dtype) == bits / 8 * 3);
  }
  const std::string plain = list({2, 3}) + word("float32") + held(std::string(24, '\1')), said = "\x93" + plain;
  const std::string n = big(said.size(), 2), chunk = array({3}, "float32", std::string(12, '\1'));
  for (const std::string& s :
       {one(array()), one(extension(said, 3)), "\xde" + big(1, 2) + word("w") + array(),
        "\xdf" + big(1, 4) + "\xd9\1w" + array(), one("\xc8" + n + "\1" + said),
        one("\xc9" + big(0, 2) + n + "\1" + said), one(extension("\xdc" + big(3, 2) + plain)),
        one(extension("\xdd" + big(3, 4) + plain)),
        one(extension("\x93\x92\xcc\2\xcd" + big(3, 2) + "\xda" + big(7, 2) + "float32\xc5" + big(24, 2) +
                      std::string(24, '\1'))),
        chunked(kShape, map({{"0", chunk}, {"1", chunk}})), chunked(kShape, map({{"0", array()}}))}) {
    const io::FlaxFile file = opened(s);
    REQUIRE(file.entries().size() == 1);
    CHECK(file.entries()[0].name == "w");
    const Tensor x = file.read(file.entries()[0]);
    CHECK(x.shape() == Dims{2, 3});
    for (float v : x.to_vector<float>()) CHECK(v == std::bit_cast<float>(0x01010101));
  }
  CHECK(opened(one(array({}, "float32", "1234"))).entries()[0].shape == Dims{});
  // An extension of 16 bytes, a type without a length field.
  CHECK(opened(one("\xd8\1\x93\x91\5" + word("uint8") + held("12345"))).entries()[0].shape == Dims{5});
}

TEST_CASE("flax: a file that is no tree of arrays is refused before memory is allocated") {
  constexpr uint64_t kHuge = UINT64_MAX;
  struct Case {
    std::string file;
    const char* says;
  };
  std::string deep = array();
  for (int i = 0; i < 33; ++i) deep = one(deep);
  const std::string chunk = array({3}, "float32", std::string(12, '\1'));
  const std::vector<Case> cases = {
      {"", "byte 0: it ends inside of a value"},
      {"\x90", "the file is a list, expected a map"},
      {"\xc0", "the file is another value, expected a map"},
      {"\x81", "it ends inside of a value"},
      {"\x81\1", "a key is a number, expected a string"},
      {"\x81\xdb\xff\xff\xff\xff", "it ends inside of a value of 4294967295 bytes"},
      {"\xdf\xff\xff\xff\xff", "it ends inside of a value"},
      {one(array()) + "1", "1 bytes after its end"},
      {one(array()).substr(0, 20), "it ends inside of a value"},
      {one("\1"), "'w' is a number, expected a map or an array"},
      {one("\xc3"), "'w' is a truth value"},
      {one("\xcb" + big(0, 8)), "'w' is another value"},
      {one(word("x")), "'w' is a string"},
      {one("\xc4\1x"), "'w' is bytes"},
      {one("\x90"), "'w' is a list"},
      {map({{"w", array()}, {"w", array()}}), "'w' is there twice"},
      {map({{"w", map({})}, {"w", map({})}}), "'w' is there twice"},
      {map({{"a.b", array()}, {"a", map({{"b", array()}})}}), "'a.b' is there twice"},
      {deep, "deeper than 32"},
      // Arrays
      {one(extension("", 2)), "an extension of type 2"},
      {one("\xc9\xff\xff\xff\xff\1"), "it ends inside of a value of 4294967295 bytes"},
      {one(extension("\1")), "an array is a number, expected a list"},
      {one(extension(list({1, 2}))), "an array has 2 parts"},
      {one(extension("\x93\1")), "a shape is a number"},
      {one(array({1, 1, 1, 1, 1, 1, 1, 1, 1})), "9 dimensions"},
      {one(array({1, 1, 1, 1, 1, 1, 1, 6}, "float16", std::string(12, '\1'))), "has 8 dimensions, expected fewer"},
      {one(extension("\x93\xdd\xff\xff\xff\xff")), "4294967295 dimensions"},
      {one(extension("\x93\x91\xff")), "a size is another value"},
      {one(array({kHuge})), "a size is 18446744073709551615"},
      {one(array({kHuge / 2, 2})), "x.'w': shape"},
      {one(array({kHuge / 2})), "x.'w': size"},
      {one(array({2, 4})), "shape [2, 4] of float32 takes 32 bytes, there are 24"},
      {one(array({2, 3}, "float64")), "takes 48 bytes, there are 24"},
      {one(array({2, 3}, "complex64")), "the dtype is 'complex64'"},
      {one(extension("\x93" + list({6}) + held("float32"))), "a dtype is bytes, expected a string"},
      {one(extension("\x93" + list({6}) + word("float32") + word("1"))), "what an array holds is a string"},
      {one(extension("\x93" + list({6}) + word("float32") + "\xc6" + big(24, 4) + std::string(23, '\1'))) + "1",
       "takes 24 bytes, there are 24 in a value that has 23"},
      {one(extension("\x93" + list({6}) + word("float32") + held(std::string(24, '\1')) + "1")), "has 25"},
      {one("\xc7\1\1" + array().substr(3)), "in a value that has -"},
      // Chunks
      {"\x83\xb9__msgpack_chunked_array__\xc3", "has more than an array in chunks"},
      {one("\x82\xb9__msgpack_chunked_array__\xc3"), "'w' has more than an array in chunks"},
      {one("\x83\xb9__msgpack_chunked_array__\1"), "a mark of chunks is a number"},
      {one("\x83\xb9__msgpack_chunked_array__\xc3" + word("chunks")),
       "'chunks' in an array in chunks, expected 'shape'"},
      {chunked(list({6}), map({})), "a shape is a list, expected a map"},
      {chunked(map({{"1", "\6"}}), map({})), "'1' in an array in chunks, expected '0'"},
      {chunked(kShape, map({})), "an array of no chunks"},
      {chunked(kShape, map({{"0", "\1"}})), "a chunk is a number"},
      {chunked(kShape, map({{"0", chunk}})), "takes 24 bytes, its chunks have 12"},
      {chunked(kShape, map({{"0", chunk}, {"1", chunk}, {"2", chunk}})), "takes 24 bytes, its chunks have 36"},
      {chunked(kShape, map({{"0", chunk}, {"2", chunk}})), "'2' in an array in chunks, expected '1'"},
      {chunked(kShape, map({{"0", chunk}, {"1", array({3}, "int32", std::string(12, '\1'))}})), "of two dtypes"},
      {chunked(map({{"0", number(kHuge / 2)}, {"1", number(kHuge / 2)}}), map({{"0", chunk}})), "x.'w': shape"},
  };
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  for (const Case& c : cases) {
    INFO(c.says);
    CHECK_THROWS_WITH(opened(c.file), Contains(c.says) && StartsWith("x"));
  }
  CHECK(host_allocator().stats().peak == before);
  // Many keys; and paths that together are longer than the file.
  std::string keys = "\xdf" + big(1'000'000, 4);
  for (uint64_t i = 0; i < 1'000'000; ++i) keys += "\xa4" + big(i, 4) + "\x80";
  CHECK_THROWS_WITH(opened(keys), Contains("keys and paths take more than 67108864 bytes"));
  std::string paths = "\x81\xdb" + big(1'000'000, 4) + std::string(1'000'000, 'k') + "\xde" + big(100, 2);
  for (char i = 0; i < 100; ++i) paths += std::string("\xa1") + i + "\x80";
  CHECK_THROWS_WITH(opened(paths), Contains("keys and paths take more than 67108864 bytes"));
}

TEST_CASE("flax: whatever byte is another one, or the last, it is an error or tensors within the file") {
  const std::string good = test::read_text("tests/fixtures/flax/vit/flax_model.msgpack");
  const auto tried = [](const std::string& s) {
    try {
      const io::FlaxFile file = opened(s);
      for (const io::TensorEntry& e : file.entries()) CHECK(file.read(e).shape() == e.shape);
      return true;
    } catch (const Error& e) {
      return std::string(e.what()).find('\n') != std::string::npos;
    }
  };
  CHECK(tried(good));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int flip : {1, 0x80, 0xff}) {
      std::string s = good;
      s[i] = static_cast<char>(s[i] ^ flip);
      tried(s);
    }
    if (i % 7 == 0) CHECK_FALSE(tried(good.substr(0, i)));
  }
}
