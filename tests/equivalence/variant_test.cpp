// What theory says about every variant and optimizer, against the table in docs/normalization.md as printed there.
#include "equivalence/variant.h"

#include <set>

#include "equivalence/recipe.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using Catch::Matchers::Contains;

TEST_CASE("theory: the verdict of every variant with every optimizer of the confirmation table") {
  using enum UpdateClass;
  const std::pair<std::string_view, UpdateClass> columns[] = {{"sgd", linear},
                                                              {"momentum", linear},
                                                              {"nesterov", linear},
                                                              {"sgd_l2", linear},
                                                              {"momentum_decoupled", linear},
                                                              {"adam", elementwise},
                                                              {"adam_l2", weighted},
                                                              {"adamw", elementwise},
                                                              {"clip_momentum", clipped},
                                                              {"clip_adamw", elementwise},
                                                              {"clip_l2", weighted},
                                                              {"sign", elementwise},
                                                              {"lamb", weighted}};
  const std::pair<const char*, const char*> rows[] = {
      {"a1", "======!===!=!"}, {"a2", "!!!!!!!!!!!!!"}, {"a3", "=====!!!=!!!!"}, {"a4", "=====!!!!!!!!"},
      {"a5", "======!===!=!"}, {"a6", "=====!!!=!!!!"}, {"a7", "======!===!=!"}, {"b", "============="},
      {"c1", "!!!!!!!!!!!!!"}, {"c2", "============="}, {"c3", "=====!!!!!!!!"}, {"c4", "======-===-=-"},
      {"d1", "=====!!!=!!!!"}, {"d2", "======-===-=-"}};
  for (const auto& [alias, printed] : rows)
    for (size_t c = 0; c < std::size(columns); ++c) {
      INFO(alias << " with " << columns[c].first);
      const char* sign = name_of(variant(alias).expectation(columns[c].second));
      CHECK(std::string(sign) == (printed[c] == '=' ? "same" : printed[c] == '!' ? "different" : "n/a"));
    }
}

TEST_CASE("recipes belong to the classes that the theory puts them in") {
  using enum UpdateClass;
  CHECK(recipe("sgd_l2").update == linear);
  CHECK(recipe("adam").update == elementwise);
  CHECK(recipe("adam_l2").update == weighted);
  CHECK(recipe("clip_momentum").update == clipped);
  CHECK(recipe("clip_l2").update == weighted);
  std::set<std::string> names;
  for (const Recipe& r : recipes()) CHECK(names.insert(r.name).second);
}

TEST_CASE("variants have names and aliases of their own, and say what they do") {
  std::set<std::string> names, sentences;
  for (const Variant& v : variants()) {
    INFO(v.name);
    CHECK(names.insert(v.name).second);
    CHECK(names.insert(v.alias).second);
    CHECK(&variant(v.alias) == &v);
    CHECK(&variant(v.name) == &v);
    CHECK(sentences.insert(stores(v) + maps_forward(v) + treats_gradients(v) + treats_weights(v)).second);
  }
  CHECK(variants().size() == 15);
  CHECK_THROWS_WITH(variant("z9"), Contains("z9") && Contains("d2 isometric_lifted"));
  CHECK_THROWS_WITH(raw_variant(nn::StreamForm::none), Contains("none"));
  CHECK_THROWS_WITH(recipe("sgdd"), Contains("sgdd") && Contains("adamw"));
}

TEST_CASE("raw variants are one for each form of the stream") {
  for (auto form : {nn::StreamForm::layer_norm, nn::StreamForm::rms_norm, nn::StreamForm::crms_norm,
                    nn::StreamForm::crms_isometric}) {
    CHECK(raw_variant(form).form == form);
    CHECK(raw_variant(form).raw());
    CHECK(std::string(raw_variant(form).parametrisation()) == "raw");
  }
  CHECK_FALSE(variant("a1").raw());
  CHECK(std::string(variant("a2").parametrisation()) == "projected_once");
}
