// The idx reader: valid files, and hostile files, which must be refused with a message and without a large allocation.
#include "io/data/published_sets.h"

#include <algorithm>

#include "core/memory/allocator.h"
#include "tests/support/catch.h"
#include "tests/support/gzip.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Raw = std::vector<uint8_t>;

namespace {

Raw idx(std::vector<uint8_t> magic, std::vector<uint32_t> sizes, size_t elements) {
  Raw b = std::move(magic);
  for (uint32_t s : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) b.push_back(static_cast<uint8_t>(s >> shift));
  for (size_t i = 0; i < elements; ++i) b.push_back(static_cast<uint8_t>(i * 7));
  return b;
}
Raw cut(Raw b, size_t from_end) {
  b.resize(b.size() - from_end);
  return b;
}
Raw joined(Raw a, const Raw& b) {
  for (uint8_t v : b) a.push_back(v);
  return a;
}
Tensor parse(const Raw& b) { return data::read_idx(memory_bytes(b, "x")); }

}  // namespace

TEST_CASE("idx: plain and compressed files of every rank") {
  for (bool zip : {false, true}) {
    const auto pack = [&](const Raw& b) { return zip ? gzip(b) : b; };
    const Tensor a = parse(pack(idx({0, 0, 8, 3}, {2, 3, 4}, 24)));
    CHECK(a.shape() == Dims{2, 3, 4});
    CHECK(a.dtype() == DType::u8);
    for (int i = 0; i < 24; ++i) CHECK(a.data<uint8_t>()[i] == i * 7);
    CHECK(parse(pack(idx({0, 0, 8, 1}, {5}, 5))).shape() == Dims{5});
    CHECK(parse(pack(idx({0, 0, 8, 2}, {0, 9}, 0))).numel() == 0);
    CHECK(parse(pack(idx({0, 0, 8, 8}, {1, 1, 1, 1, 1, 1, 1, 3}, 3))).rank() == 8);
    CHECK(parse(pack(idx({0, 0, 8, 1}, {300000}, 300000))).numel() == 300000);
  }
}

TEST_CASE("idx: gzip in several members, and zero bytes after them") {
  const Raw whole = idx({0, 0, 8, 2}, {3, 100000}, 300000), zeros(100000);
  const auto part = [&](size_t begin, size_t end) { return gzip(std::span(whole).subspan(begin, end - begin)); };
  // Members that end within the header and within the data, with an empty member between them.
  const Raw members = joined(joined(part(0, 7), gzip(Raw{})), joined(part(7, 200000), part(200000, whole.size())));
  for (const Raw& file : {members, joined(members, {0}), joined(members, zeros), joined(gzip(whole), zeros),
                          joined(joined(part(0, 9), zeros), part(9, whole.size()))}) {
    const Tensor a = parse(file);
    CHECK(a.shape() == Dims{3, 100000});
    CHECK(std::equal(whole.begin() + 12, whole.end(), a.data<uint8_t>()));
  }
}

TEST_CASE("idx: hostile files") {
  struct Case {
    const char* what;
    Raw bytes;
    const char* says;
  };
  const Raw good = idx({0, 0, 8, 2}, {10, 100}, 1000), zipped = gzip(good);
  Raw bad_checksum = zipped, bad_length = zipped, bad_middle = zipped, bad_method = zipped;
  bad_checksum[zipped.size() - 6] ^= 1;
  bad_length[zipped.size() - 2] ^= 1;
  for (size_t i = 20; i < 30; ++i) bad_middle[i] ^= 0xff;
  bad_method[2] = 9;
  // A header that declares 16 elements, followed by a megabyte of zeros, in a file of 1,000 bytes.
  const Raw bomb = gzip(joined(idx({0, 0, 8, 1}, {16}, 16), Raw(1 << 20)));
  const std::vector<Case> cases = {
      {"empty file", {}, "shorter than a header"},
      {"three bytes", {0, 0, 8}, "shorter than a header"},
      {"first zero missing", idx({1, 0, 8, 1}, {1}, 1), "begins with 1, 0"},
      {"second zero missing", idx({0, 7, 8, 1}, {1}, 1), "begins with 0, 7"},
      {"little-endian magic", {1, 8, 0, 0, 1, 0, 0, 0, 5}, "begins with 1, 8"},
      {"signed bytes", idx({0, 0, 9, 1}, {1}, 1), "element type 9"},
      {"floats", idx({0, 0, 13, 1}, {1}, 4), "element type 13"},
      {"unknown type", idx({0, 0, 255, 1}, {1}, 1), "element type 255"},
      {"rank 0", idx({0, 0, 8, 0}, {}, 1), "rank 0"},
      {"rank 9", idx({0, 0, 8, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 1), "rank 9"},
      {"rank 255", idx({0, 0, 8, 255}, {1}, 1), "rank 255"},
      {"sizes missing", idx({0, 0, 8, 3}, {2, 2}, 0), "header is cut off"},
      {"half a size", cut(idx({0, 0, 8, 1}, {2}, 0), 2), "header is cut off"},
      {"data missing", cut(good, 1), "holds at most 999"},
      {"all data missing", cut(good, 1000), "holds at most 0"},
      {"data left over", joined(good, {0}), "more data"},
      {"product passes 2^31", idx({0, 0, 8, 2}, {1u << 16, 1u << 16}, 4), "over the limit"},
      {"product passes 2^63", idx({0, 0, 8, 3}, {1u << 31, 1u << 31, 4}, 4), "passes the largest size"},
      {"product passes 2^64", idx({0, 0, 8, 4}, {1u << 31, 1u << 31, 1u << 31, 1u << 31}, 4),
       "passes the largest size"},
      {"all ones", idx({0, 0, 8, 1}, {0xffffffffu}, 4), "over the limit"},
      {"a billion in 100 bytes", idx({0, 0, 8, 1}, {1000000000}, 100), "holds at most"},
      {"a billion in a small gzip", gzip(idx({0, 0, 8, 1}, {1000000000}, 100)), "holds at most"},
      {"gzip: data missing", gzip(cut(good, 10)), "the data has 990"},
      {"gzip: data left over", gzip(joined(good, {0})), "more data"},
      {"gzip bomb", bomb, "more data"},
      {"gzip: trailer cut off", cut(zipped, 4), "cut off"},
      {"gzip: cut in the middle", cut(zipped, zipped.size() / 2), "cut off"},
      {"gzip: two bytes", {0x1f, 0x8b}, "cut off"},
      {"gzip: wrong checksum", bad_checksum, "damaged compression"},
      {"gzip: wrong length", bad_length, "damaged compression"},
      {"gzip: damaged in the middle", bad_middle, "damaged compression"},
      {"gzip: unknown method", bad_method, "damaged compression"},
      {"gzip: bytes after the end", joined(zipped, {1, 2, 3}), "3 bytes after the end"},
      {"gzip: zeros, then other bytes", joined(zipped, {0, 0, 7}), "1 bytes after the end"},
      {"gzip: more data in a second member", joined(zipped, gzip(Raw{0})), "more data"},
      {"gzip: a second member that is cut off", joined(zipped, cut(gzip(Raw{}), 1)), "cut off"},
      {"gzip: no second member, but its first byte", joined(zipped, {0x1f, 0}), "damaged compression"},
      {"gzip of gzip", gzip(zipped), "begins with 31, 139"},
      {"gzip of nothing", gzip(Raw{}), "shorter than a header"},
  };
  host_allocator().empty_cache();
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  for (const Case& c : cases) {
    INFO(c.what);
    CHECK_THROWS_WITH(parse(c.bytes), Contains(c.says) && Contains("x: "));
  }
  CHECK(host_allocator().stats().peak - before < 1 << 16);
}

TEST_CASE("idx: files that cannot be read") {
  const TempFolder folder;
  CHECK_THROWS_WITH(data::read_idx(folder / "none"), Contains("none: cannot open: No such file"));
  CHECK_THROWS_WITH(data::read_idx(folder.path.string()), Contains("not a regular file"));
  write_bytes(folder / "a", idx({0, 0, 8, 1}, {4}, 4));
  CHECK(data::read_idx(folder / "a").numel() == 4);
}
