// Parameter maps: patterns, maps along a dimension, adjoints checked by inner products, and refused files.
#include "equivalence/coordinates/parameter_map.h"

#include "tests/equivalence/room.h"

TEST_CASE("parameter map: the first rule that fits decides, stars carry over, other names keep themselves") {
  const ParameterMap map = ParameterMap::from_json(
      R"( [{"a": "blocks.*.attn.**", "b": "h.*.a.**", "map": ["transpose", "recentre"], "dim": 1},
           {"a": "mask", "b": ""}, {"a": "blocks.**", "b": "rest.**"}, {"a": "wte", "map": "compress"}] )");
  CHECK(map.route("blocks.3.attn.proj.weight")->name == "h.3.a.proj.weight");
  CHECK(map.route("blocks.3.attn.proj.weight")->legs.size() == 2);
  CHECK(map.route("blocks.3.mlp")->name == "rest.3.mlp");
  CHECK_FALSE(map.route("mask"));
  CHECK(map.route("wte")->name == "wte");
  CHECK(map.route("wte")->legs[0].map == "compress");
  CHECK(map.route("other")->name == "other");
  const ParameterMap stars = ParameterMap().add("a*b*", "*|*").add("*x", "[*]");
  CHECK(stars.route("a1b2b3")->name == "1|2b3");
  CHECK(stars.route("ab")->name == "ab");      // a star stands for at least one character
  CHECK(stars.route("a.b1")->name == "a.b1");  // and for no dot
  CHECK(stars.route("x")->name == "x");
  CHECK(stars.route("xx")->name == "[x]");
  CHECK(stars.route("a1")->name == "a1");
}

TEST_CASE("parameter map: <M w, g> = <w, M* g> for every map and their products") {
  manual_seed(2);
  const Tensor w = randn({5, 7}, {DType::f64});
  for (const char* last :
       {"identity", "recentre", "compress", "expand", "compress_reader", "expand_reader", "isometric"})
    for (int dim : {0, 1}) {
      const Route route{"w", {{"transpose", 0}, {"recentre", 0}, {last, dim}}};
      const Tensor y = route.forward(w), g = randn(y.shape(), {DType::f64});
      INFO(last << " along " << dim);
      CHECK(std::abs(sum(y * g).item() - sum(w * route.adjoint(g, w.shape())).item()) < 1e-13);
    }
  CHECK(Route{"w", {{"compress", 0}}}.forward(w).shape() == Dims{4, 7});
}

TEST_CASE("parameter map: contradictory maps are refused in one line") {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"a": "x"})", "expected '['"},
      {R"([{"b": "x"}])", "has no \"a\""},
      {R"([{"a": "x", "map": "project"}])", "no map is called 'project'; there are transpose, reshape, identity"},
      {R"([{"a": "x", "to": "y"}])", "no key 'to'"},
      {R"([{"a": "x", "b": "y.*"}])", "more * than"},
      {R"([{"a": "w", "a": "v", "b": "v"}])", "the key 'a' twice"},
      {R"([{"a": "x", "b": "y", "b": "z"}])", "the key 'b' twice"},
      {R"([{"a": "x", "dim": 9}])", "dimension 9 is not in 0 to 7"},
      {R"([{"a": "x"}] x)", "expected end of input"}};
  for (const auto& [json, part] : wrong) {
    INFO(json);
    CHECK_THROWS_WITH(ParameterMap::from_json(json), Contains(part));
  }
  const Tensor w = randn({5, 7}, {DType::f64});
  CHECK_THROWS_WITH((Route{"w", {{"recentre", 2}}}.forward(w)), Contains("recentre along dimension 2 does not fit"));
  CHECK_THROWS_WITH((Route{"w", {{"compress", 0}}}.adjoint(w, {5, 7})), Contains("its partner becomes [4, 7]"));
}
