// SHA-256 against NIST's examples for FIPS 180-4, and for lengths around the block size.
#include "io/sha256.h"

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using namespace isonorm::io;

namespace {
std::string digest(std::string_view s) {
  Sha256 hash;
  hash.update(s);
  return hash.hex();
}
}  // namespace

TEST_CASE("sha256 gives NIST's digests") {
  CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 does not depend on how the bytes arrive") {
  for (size_t length : {1u, 55u, 56u, 63u, 64u, 65u, 119u, 120u, 128u, 1000u}) {
    const std::string bytes(length, 'x');
    Sha256 hash;
    for (size_t i = 0; i < length; i += 7) hash.update(std::string_view(bytes).substr(i, 7));
    CHECK(hash.hex() == digest(bytes));
  }
}

TEST_CASE("sha256_of_files reads the files one after the other and names one that is missing") {
  const TempFolder f;
  write_text(f / "a", "a"), write_text(f / "b", "bc");
  CHECK(sha256_of_files({f / "a", f / "b"}) == digest("abc"));
  try {
    sha256_of_files({f / "none"});
    FAIL("a missing file was accepted");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
    CHECK_THAT(e.what(), Catch::Matchers::Contains(f / "none"));
  }
}
