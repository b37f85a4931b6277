// Files that are mapped or read in pieces and become shorter meanwhile.
#include "core/system/file.h"

#include <filesystem>
#include <numeric>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

constexpr int64_t kSize = 1000000;

int64_t sum(std::string_view bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

}  // namespace

TEST_CASE("a mapped file has all its bytes, and may grow meanwhile") {
  const TempFolder f;
  write_text(f / "text", std::string(kSize, '\1'));
  read_mapped(f / "text", [&](std::string_view bytes) {
    std::filesystem::resize_file(f / "text", 2 * kSize);
    CHECK(bytes.size() == kSize);
    CHECK(sum(bytes) == kSize);
  });
  write_text(f / "text", "");
  read_mapped(f / "text", [&](std::string_view bytes) { CHECK(bytes.empty()); });
  const auto ignore = [](std::string_view) {};
  CHECK_THROWS_WITH(read_mapped(f / "none", ignore), EndsWith("none: cannot open: No such file or directory"));
  CHECK_THROWS_WITH(read_mapped(f.path.string(), ignore), EndsWith("it is not a regular file"));
}

TEST_CASE("a file that becomes shorter while it is mapped is an error, whatever was made of its bytes") {
  const TempFolder f;
  const std::string why = f / "text" + ": the file became shorter while it was read";
  for (const int64_t left :
       {int64_t{0}, int64_t{4096}, kSize / 2, kSize - 1})  // the last: within a page, without a signal
    for (const bool throws : {false, true}) {
      CAPTURE(left, throws);
      write_text(f / "text", std::string(kSize, '\1'));
      bool seen = false;
      const auto use = [&](std::string_view bytes) {
        CHECK(bytes[0] == 1);
        std::filesystem::resize_file(f / "text", static_cast<uintmax_t>(left));
        CHECK(sum(bytes) == left);
        seen = true;
        check(!throws, "a word of zeros");
      };
      CHECK_THROWS_WITH(read_mapped(f / "text", use), why);
      CHECK(seen);
    }
}

TEST_CASE("an open file that became shorter is an error of its read") {  // all other readers use this read
  const TempFolder f;
  write_text(f / "text", std::string(kSize, '\1'));
  const Bytes file = open_bytes(f / "text");
  std::vector<char> bytes(kSize);
  file.read(0, bytes.data(), kSize);
  std::filesystem::resize_file(f / "text", kSize - 1);
  CHECK_THROWS_WITH(file.read(0, bytes.data(), kSize), "the file became shorter while it was read");
}

TEST_CASE("of files that are mapped at once the one that became shorter is named") {
  const TempFolder f;
  for (const char* name : {"a", "b"}) write_text(f / name, std::string(kSize, '\1'));
  const auto read_both = [&](const std::string& cut) {
    read_mapped(f / "a", [&](std::string_view a) {
      read_mapped(f / "b", [&](std::string_view b) {
        std::filesystem::resize_file(cut, 0);
        CHECK(sum(a) + sum(b) == kSize);
      });
    });
  };
  CHECK_THROWS_WITH(read_both(f / "a"), Contains("/a: the file became shorter"));
  write_text(f / "a", std::string(kSize, '\1'));
  CHECK_THROWS_WITH(read_both(f / "b"), Contains("/b: the file became shorter"));
}
