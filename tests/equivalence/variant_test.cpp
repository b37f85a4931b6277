// Variants and recipes: their names and descriptions.
#include "equivalence/coordinates/variant.h"

#include <set>

#include "equivalence/grid/recipe.h"
#include "tests/equivalence/room.h"

TEST_CASE("recipes have names of their own") {
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
  for (const Variant& v : variants()) {
    CHECK(treats_gradients(v).starts_with("lifted") == (v.gradients == GradientRule::lifted));
    CHECK(treats_gradients(v).starts_with("given") == (v.gradients == GradientRule::as_is));
  }
  CHECK(variants().size() == 15);
  CHECK_THROWS_WITH(variant("z9"), Contains("z9") && Contains("d2 isometric_lifted"));
  CHECK_THROWS_WITH(raw_variant(streams::Form::none), Contains("none"));
  CHECK_THROWS_WITH(recipe("sgdd"), Contains("sgdd") && Contains("adamw"));
}

TEST_CASE("raw variants are one for each form of the stream") {
  for (auto form :
       {streams::Form::layer_norm, streams::Form::rms_norm, streams::Form::crms_norm, streams::Form::crms_isometric}) {
    CHECK(raw_variant(form).form == form);
    CHECK(raw_variant(form).raw());
    CHECK(std::string(raw_variant(form).parametrisation()) == "raw");
  }
  CHECK_FALSE(variant("a1").raw());
  CHECK(std::string(variant("a2").parametrisation()) == "projected_once");
}
