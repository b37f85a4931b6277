// The expected verdicts of all cells of the grid, derived from measured properties of the updates, compared with the
// published table; the effect of an architecture; variants that differ from their names.
#include "equivalence/grid/expectation.h"

#include "equivalence/grid/grid.h"
#include "tests/equivalence/room.h"

namespace {

char sign(MaybeVerdict e) { return e == Verdict::equivalent ? '=' : e == Verdict::different ? '!' : '-'; }

// The 330 cells of docs/normalization.md, with the columns in the order of recipes().
constexpr std::pair<const char*, const char*> kPublished[] = {
    {"a1", "======!===!=!====!!==="}, {"a2", "!!!!!!!!!!!!!!!!!!!!!!"}, {"a3", "=====!!!=!!!!!!!!!!!=="},
    {"a4", "=====!!!!!!!!!!!!!!!!!"}, {"a5", "======!===!=!====!!==="}, {"a6", "=====!!!=!!!!!!!!!!!=="},
    {"a7", "======!===!=!====!!==="}, {"b", "======================"},  {"c1", "!!!!!!!!!!!!!!!!!!!!!!"},
    {"c2", "======================"}, {"c3", "=====!!!!!!!!!!!!!!!!!"}, {"c4", "======-===-=-====--==="},
    {"c5", "======================"}, {"d1", "=====!!!=!!!!!!!!!!!=!"}, {"d2", "======-===-=-====--==="}};

// The expected verdicts of all variants.
std::string row_of(const Predicates& update, const Visible& visible = {}) {
  std::string signs;
  for (const Variant& v : variants()) signs += sign(expectation(v, update, visible).value);
  return signs;
}

Predicates with_all() {
  Predicates all;
  for (Measured& m : all.measured) m.holds = true;
  return all;
}

}  // namespace

TEST_CASE("expectation: the published table follows from the optimizers' updates, in all 330 cells, for gpt and vit") {
  for (const bool vit : {false, true}) {
    TableOptions o;
    if (vit) o.model = &kVit, o.made = true;
    for (size_t c = 0; c < recipes().size(); ++c) {
      const Predicates update = predicates_of(o, recipes()[c]);
      for (const auto& [alias, row] : kPublished) {
        REQUIRE(std::string_view(row).size() == recipes().size());
        const Derived derived = expectation(variant(alias), update);
        INFO(alias << " with " << recipes()[c].name << ": " << derived.because);
        CHECK(sign(derived.value) == row[c]);
      }
    }
  }
  CHECK(std::size(kPublished) == variants().size());
}

TEST_CASE("expectation: a single property that is missing decides the cells that need it, and no others") {
  const std::pair<Property, const char*> cases[] = {//                                a1234567 b c12345 d12
                                                    {Property::repeats, "!!!!!!!!!!!-!!-"},
                                                    {Property::linear, "==========!===="},
                                                    {Property::rotates, "==========!==!="},
                                                    {Property::covariant, "========!======"},
                                                    {Property::any_width, "========!=!==!="},
                                                    {Property::writers_mean_unseen, "!!!!!!!=!=!-=!-"},
                                                    {Property::readers_mean_unseen, "=====!!=!=!-=!-"},
                                                    {Property::keeps_writers, "==!==!========="},
                                                    {Property::keeps_readers, "=====!========="},
                                                    {Property::gradient_mean_unseen, "=!=!==========="},
                                                    {Property::centres_writers, "=!============="},
                                                    {Property::ignores_weights, "==============="},
                                                    {Property::tensors_apart, "==============="}};
  CHECK(std::size(cases) == kProperties);
  for (const auto& [property, expected] : cases) {
    Predicates update = with_all();
    update.measured[static_cast<size_t>(property)].holds = false;
    INFO(name_of(property));
    CHECK(row_of(update) == expected);
  }
}

TEST_CASE("expectation: what a learned gain and a tied head take away") {
  const Predicates update = with_all();
  const auto row = [&](const Visible& visible) { return row_of(update, visible); };
  //                                              a1234567 b c12345 d12
  CHECK(row({}) == "===============");
  CHECK(row({.affine = true}) == "========-=--=--");
  CHECK(row({.affine = true, .readers_mean = true}) == "=====--=-=--=--");
  CHECK(row({.affine = true, .writers_mean = true, .readers_mean = true}) == "-------=-=--=--");
  CHECK(row({.writers_mean = true}) == "-------=-=--=--");
  CHECK_THAT(expectation(variant("c3"), update, {.affine = true}).because, Contains("no place for a learned gain"));
  CHECK(row({.gradient_mean = true}) == "===============");  // an update that has all properties is not affected
  Predicates adam = update;
  adam.measured[static_cast<size_t>(Property::gradient_mean_unseen)].holds = false;
  CHECK(expectation(variant("a7"), adam).value == Verdict::equivalent);
  CHECK(expectation(variant("a7"), adam, {.gradient_mean = true}).value == Verdict::different);
  Visible isometric;
  isometric.another_function.insert(streams::Form::crms_isometric);
  CHECK(row(isometric) == "============!!!");
  CHECK_THAT(expectation(variant("c5"), update, isometric).because, Contains("crms_isometric the model is another"));
}

TEST_CASE("expectation: depends on the data and updates of a variant, not on its name") {
  const Predicates update = predicates_of({}, recipe("adam")), decaying = predicates_of({}, recipe("lamb"));
  const Predicates sgd = predicates_of({}, recipe("sgd"));
  const auto expected = [](const char* name, const Predicates& p, void (*change)(Variant&)) {
    Variant v = variant(name);
    change(v);
    return expectation(v, p).value;
  };
  const MaybeVerdict same = Verdict::equivalent, different = Verdict::different, undefined;
  CHECK(expected("c1", update, [](Variant& v) { v.storage = streams::Stored::raw; }) == same);
  CHECK(expected("b", update, [](Variant& v) { v.storage = streams::Stored::mapped; }) == different);
  // Raw, but the mean of the weights is removed.
  const auto recentred = [](Variant& v) { v.after_step = Projection::writers; };
  CHECK(expected("b", update, recentred) == same);
  CHECK(expected("b", decaying, recentred) == different);
  // Lifted with P, like a5.
  const auto lifted = [](Variant& v) { v.form = streams::Form::rms_norm; };
  CHECK(expected("c4", update, lifted) == same);
  CHECK(expected("c4", decaying, lifted) == undefined);
  CHECK(expected("c4", update,
                 [](Variant& v) { v.form = streams::Form::rms_norm, v.storage = streams::Stored::raw; }) == undefined);
  // Would subtract the mean of coordinates.
  CHECK(expected("d1", sgd, [](Variant& v) { v.start = Projection::writers; }) == undefined);
}
