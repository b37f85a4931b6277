// A class that keeps a reference cannot be made from a temporary, which would be destroyed: checked at compile time.
#include <type_traits>

#include "autograd/early_leaves.h"
#include "equivalence/verify/canonical.h"
#include "equivalence/reference/readings.h"
#include "nn/module_scope.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;

TEST_CASE("classes that keep a reference refuse a temporary and take a named object") {
  STATIC_REQUIRE(std::is_constructible_v<Canonical, const Piece&, bool>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Canonical, Piece, bool>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Canonical, Piece, bool, const TensorMap*>);

  using Layout = streams::Plan;
  STATIC_REQUIRE(std::is_constructible_v<Readings, const LazyState&, const Layout&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Readings, LazyState, const Layout&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Readings, const LazyState&, Layout>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Readings, LazyState, Layout>);

  using Outputs = std::span<const Tensor>;
  STATIC_REQUIRE(std::is_constructible_v<autograd::EarlyLeaves, Outputs, const GradientListener&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<autograd::EarlyLeaves, Outputs, GradientListener>);

  STATIC_REQUIRE(std::is_constructible_v<nn::ModuleScope, const nn::Module&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<nn::ModuleScope, nn::Module>);

  STATIC_REQUIRE(std::is_constructible_v<Scope, const char*>);
  STATIC_REQUIRE(std::is_constructible_v<Scope, std::string_view>);
  STATIC_REQUIRE(std::is_constructible_v<Scope, const std::string&>);
  STATIC_REQUIRE(std::is_constructible_v<Scope, std::string&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Scope, std::string>);
}
