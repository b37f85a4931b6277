// safetensors: round trips, also through the safetensors library in both directions.
#include "io/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("safetensors: every dtype, rank 0 to 8, empty tensors, views") {
  const TempFolder f;
  TensorMap m;
  m.add("u8", from_vector<uint8_t>({0, 1, 255}, {3}));  // three bytes first: the others must still be aligned
  m.add("f32", from_vector<float>({1.5f, -0.f, std::numeric_limits<float>::quiet_NaN(), INFINITY, 1e-45f, 3}, {2, 3}));
  m.add("f64", from_vector<double>({M_PI, -1e308}, {2, 1}));
  m.add("bf16", from_vector<bf16>({bf16(1.f), bf16(-3.f)}, {2}));
  m.add("i64", from_vector<int64_t>({INT64_MIN, INT64_MAX}, {2}));
  m.add("scalar", from_vector<float>({42}, {}));
  m.add("empty", empty({0, 5}, {DType::f64}));
  m.add("rank 8", from_vector<uint8_t>({7, 8}, {1, 1, 1, 2, 1, 1, 1, 1}));
  m.add("transposed", as_strided(m.at("f32"), {3, 2}, {1, 3}, 0));
  m.add("", from_vector<float>({1}, {1}));
  m.add("\"ä\\\n\x01 \xf0\x9f\x98\x80", from_vector<float>({2}, {1}));
  save_safetensors(f / "a", m, {{"format", "pt"}, {"ünï", "\t\"x\""}});

  Metadata metadata;
  const TensorMap back = load_safetensors(f / "a", &metadata);
  CHECK(metadata == Metadata{{"format", "pt"}, {"ünï", "\t\"x\""}});
  REQUIRE(back.size() == m.size());
  auto at = back.begin();
  for (const auto& [name, tensor] : m) {
    INFO(name);
    CHECK(at->first == name);  // the order of the map
    CHECK(same_bytes(at->second, tensor));
    ++at;
  }
  save_safetensors(f / "b", back, metadata);
  CHECK(read_bytes(f / "a") == read_bytes(f / "b"));

  const std::vector<uint8_t> none = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
  CHECK(load_safetensors(memory_bytes(none, "none")).empty());
}

TEST_CASE("safetensors: dtypes that are none of ours are bytes, one tensor read and written at a time") {
  const TempFolder f;
  const std::vector<io::TensorEntry> entries = {{"mask", DType::u8, {2, 2}, 0, 0, "BOOL"},
                                                {"ids", DType::u8, {3, 4}, 0, 0, "I32"},
                                                {"half", DType::u8, {1, 2}, 0, 0, "F16"},
                                                {"x", DType::f32, {2}}};
  const auto value = [](const std::string& name) {
    if (name == "x") return from_vector<float>({1, 2}, {2});
    if (name == "mask") return from_vector<uint8_t>({1, 0, 1, 1}, {2, 2});
    return name == "half" ? from_vector<uint8_t>({0, 60}, {1, 2})
                          : from_vector<uint8_t>({1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255}, {3, 4});
  };
  save_safetensors(f / "a", entries, {{"format", "pt"}}, value);
  const auto bytes = read_bytes(f / "a");
  CHECK_THAT(std::string(bytes.begin() + 8, bytes.end()),
             Contains(R"("mask":{"dtype":"BOOL","shape":[2,2],"data_offsets":[22,26]})") &&
                 Contains(R"("ids":{"dtype":"I32","shape":[3],"data_offsets":[0,12]})") &&
                 Contains(R"("half":{"dtype":"F16","shape":[1],"data_offsets":[20,22]})"));
  const SafetensorsFile file(f / "a");
  CHECK(file.metadata() == Metadata{{"format", "pt"}});
  REQUIRE(file.entries().size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(file.entries()[i].foreign == entries[i].foreign);
    CHECK(same_bytes(file.read(file.entries()[i]), value(entries[i].name)));
  }
  CHECK_THROWS_WITH(load_safetensors(f / "a"), Contains("'mask' has dtype 'BOOL', expected F32"));
  CHECK_THROWS_WITH(save_safetensors(f / "b", {{"x", DType::f64, {2}}}, {}, value), Contains("its entry f64 [2]"));
  CHECK_FALSE(std::filesystem::exists(f / "b"));
}

TEST_CASE("safetensors: elements are aligned and the header is padded") {
  const TempFolder f;
  TensorMap m;
  m.add("a", from_vector<uint8_t>({1}, {1}));
  m.add("b", from_vector<double>({1}, {1}));
  save_safetensors(f / "a", m);
  const auto bytes = read_bytes(f / "a");
  const std::string header(bytes.begin() + 8, bytes.begin() + 8 + bytes[0]);
  CHECK((8 + bytes[0]) % 8 == 0);
  CHECK_THAT(header, Catch::StartsWith(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[8,9]},"b":{"dtype":"F64")"));
}

TEST_CASE("safetensors: a file of the format's own library") {  // tests/fixtures/python_files.py
  Metadata metadata;
  const TensorMap m = load_safetensors("tests/fixtures/python.safetensors", &metadata);
  CHECK(metadata == Metadata{{"written by", "safetensors \"python\"\n"}, {"größe", "5"}});
  CHECK(m.size() == 8);
  CHECK(m.at("f32").shape() == Dims{2, 3});
  CHECK(m.at("f32").to_vector<float>() == std::vector<float>{0, 0.5f, 1, 1.5f, 2, 2.5f});
  CHECK(m.at("f64").to_vector<double>() == std::vector<double>{M_PI, -0.1});
  CHECK(m.at("bf16").dtype() == DType::bf16);
  CHECK(m.at("bf16").to_vector<float>() == std::vector<float>{1, -2.5f, 3.140625f});
  CHECK(m.at("i64").to_vector<int64_t>() == std::vector<int64_t>{-1, int64_t{1} << 40});
  CHECK(m.at("u8").to_vector<uint8_t>() == std::vector<uint8_t>{0, 128, 255});
  CHECK(m.at("scalar").rank() == 0);
  CHECK(m.at("scalar").item() == 7);
  CHECK(m.at("empty").shape() == Dims{0, 4});
  CHECK(m.at("blocks.0.ätt \"q\"").to_vector<float>() == std::vector<float>{1});
}

TEST_CASE("safetensors: what cannot be saved is refused, and the file that was there stays") {
  const TempFolder f;
  TensorMap good;
  good.add("x", from_vector<float>({1}, {1}));
  save_safetensors(f / "a", good);
  const auto old = read_bytes(f / "a");
  const auto of = [](const std::string& name, const Tensor& t) {
    TensorMap m;
    m.add(name, t);
    return m;
  };
  const struct {
    std::string path;
    TensorMap tensors;
    Metadata metadata;
    std::string says;
  } cases[] = {{"a", {}, {}, "there is no tensor to save in " + (f / "a")},
               {"a", of("x", Tensor()), {}, "'x' is undefined"},
               {"a", of("\xff", good.at("x")), {}, "not UTF-8"},
               {"a", of("__metadata__", good.at("x")), {}, "__metadata__"},
               {"a", good, {{"k", "\xc3"}}, "not UTF-8"},
               {"b/c", good, {}, "b/c: cannot create a file beside it: No such file"}};
  for (const auto& c : cases) {
    CHECK_THROWS_WITH(save_safetensors(f / c.path, c.tensors, c.metadata), Contains(c.says));
    CHECK(read_bytes(f / "a") == old);
    CHECK(f.files() == 1);  // no temporary file is left
  }
}
