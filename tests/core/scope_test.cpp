// Scope::path(), the prefix of an error message: nested modules are joined, and a file is named once.
#include "core/error.h"
#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("scope: a file name appears once, without its folder; a module may have the same name") {
  const auto nested = [](const char* outer, const char* inner) {
    const Scope a(outer), b(inner);
    return Scope::path();
  };
  CHECK(nested("blocks", "0") == "blocks.0");
  CHECK(nested("0", "0") == "0.0");
  CHECK(nested("q.npy", "q.npy") == "q.npy");
  CHECK(nested("/in/q", "/in/q") == "/in/q");
  CHECK(nested("hub", "hub/config.json") == "hub/config.json");
  CHECK(nested("hub", "hub2/config.json") == "hub.hub2/config.json");
  CHECK(nested("a.npy", "b.npy") == "a.npy.b.npy");
}
