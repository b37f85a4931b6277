// .npz: archives as NumPy writes them, and hostile ones.
#include "io/npy.h"

#include "autograd/ops/create.h"
#include "core/memory/allocator.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/support/zip.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

TensorMap parse(const std::string& s) { return load_npz(memory_bytes(s, "x")); }

const Tensor kArray = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});

ZipMember member() { return {.name = "a.b.npy", .bytes = npy_bytes(kArray)}; }

}  // namespace

TEST_CASE("npz: arrays stored and deflated, in order, with a comment") {
  const Tensor large = arange(0, 20000, 1, {DType::f64});
  for (int method : {0, 8})
    for (const char* comment : {"", "PK\5\6 a comment that looks like the record itself"}) {
      const TensorMap arrays =
          parse(zip({{.name = "h.0.x.input.npy", .bytes = npy_bytes(large), .method = method},
                     {.name = "ids.npy", .bytes = npy_bytes(from_vector<int64_t>({-1, 7}, {2})), .method = 8 - method},
                     {.name = "empty.npy", .bytes = npy_bytes(empty({0, 3})), .method = method}},
                    comment));
      REQUIRE(arrays.size() == 3);
      CHECK(arrays.begin()->first == "h.0.x.input");
      CHECK(same_bytes(arrays.at("h.0.x.input"), large));
      CHECK(same_bytes(arrays.at("ids"), from_vector<int64_t>({-1, 7}, {2})));
      CHECK(arrays.at("empty").shape() == Dims{0, 3});
    }
  CHECK(parse(zip({})).empty());
  CHECK(same_bytes(parse(zip({{.name = "a.npy", .bytes = npy_bytes(kArray)},
                              {.name = "b.npy", .bytes = npy_bytes(kArray), .wide = true}}))
                       .at("b"),
                   kArray));
}

TEST_CASE("npz: files of NumPy") {  // tests/fixtures/python_files.py
  for (const char* file : {"stored", "deflated"}) {
    const TensorMap arrays = load_npz(text("tests/fixtures/python_", file, ".npz"));
    REQUIRE(arrays.size() == 2);
    CHECK(same_bytes(arrays.at("a.b"), from_vector<float>({0, 1, 2, 3, 4, 5}, {2, 3})));
    CHECK(same_bytes(arrays.at("ids"), from_vector<int64_t>({-1, 7}, {2})));
  }
}

TEST_CASE("npz: hostile files") {
  const std::string good = zip({member()});
  const auto with = [](auto&& change) {
    ZipMember m = member();
    change(m);
    return zip({m});
  };
  const auto patched = [&](int64_t from_end, uint64_t n, int bytes) {
    std::string s = good;
    return s.replace(s.size() - static_cast<size_t>(from_end), static_cast<size_t>(bytes), little(n, bytes));
  };
  struct Case {
    std::string bytes;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"", "not a zip archive"},
      {"PK\3\4", "not a zip archive"},
      {good.substr(0, good.size() - 1), "not a zip archive"},
      {good + "x", "not a zip archive"},
      {"x" + good, "expected it to end at byte"},
      {patched(6, 1, 4), "the directory lies at byte 1"},
      {patched(6, 0xffffffff, 4), "the directory lies at byte 4294967295"},
      {patched(18, 1, 2), "one disk of several"},
      {patched(14, 0x20002, 4), "entry 1 of the directory is damaged"},
      {patched(14, 0, 4), "bytes after the last entry"},
      {with([](auto& m) { m.flags = 1; }), "a.b.npy: zip: the member is encrypted"},
      {with([](auto& m) { m.method = 12; }), "compressed by method 12"},
      {with([](auto& m) { m.wide = true, m.size = INT64_MAX; }), "9223372036854775807 bytes cannot come from"},
      {with([](auto& m) { m.wide = true, m.packed = INT64_MAX; }), "the size of the member is 9223372036854775807"},
      {with([](auto& m) { m.wide = true, m.place = INT64_MAX; }), "the place of the member is 9223372036854775807"},
      {zip({{.name = "b.npy", .bytes = npy_bytes(kArray)}, {.name = "a.npy", .bytes = npy_bytes(kArray), .place = 0}}),
       "a.npy: zip: the member lies at byte 0, the next structure at byte 0"},
      {zip({{.name = "a.npy", .bytes = npy_bytes(kArray), .packed = 200}, member()}),
       "overlap the next structure at byte"},
      {with([](auto& m) { m.name = "a.txt"; }), "called NAME.npy"},
      {with([](auto& m) { m.packed = 1 << 30; }), "the size of the member is 1073741824"},
      {with([](auto& m) { m.size = 1 << 30; }), "1073741824 bytes cannot come from"},
      {with([](auto& m) { m.method = 0, m.size = 5; }), "5 bytes cannot come from"},
      {with([](auto& m) { m.size = static_cast<int64_t>(m.bytes.size()) + 1; }), "damaged compression"},
      {with([](auto& m) { m.size = static_cast<int64_t>(m.bytes.size()) - 1; }), "damaged compression"},
      {with([](auto& m) { m.packed = 3, m.size = 9; }), "damaged compression"},
      {with([](auto& m) { m.place = 5; }), "there is no member at byte 5"},
      {with([](auto& m) { m.place = 1 << 30; }), "the place of the member is 1073741824"},
      {with([](auto& m) { m.crc_flip = 1; }), "CRC-32"},
      {with([](auto& m) { m.bytes = "no array"; }), "a.b.npy: npy: 8 bytes, shorter"},
      {zip({member(), member()}), "the name 'a.b' is there already"},
  };
  for (const Case& c : cases) {
    INFO(c.says);
    CHECK_THROWS_WITH(parse(c.bytes), Contains(c.says) && Catch::Matchers::StartsWith("x"));
  }
  // After a change of any byte, loading gives the same arrays or an error, and takes little memory.
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  for (size_t i = 0; i < good.size(); ++i)
    for (int flip : {1, 0x80, 0xff}) {
      std::string s = good;
      s[i] = static_cast<char>(s[i] ^ flip);
      try {
        const TensorMap arrays = parse(s);
        if (!arrays.empty()) CHECK(same_bytes(arrays.begin()->second, kArray));
      } catch (const Error&) {
      }
    }
  CHECK(host_allocator().stats().peak - before < (1 << 20));
}
