// Conversion in pieces: the same tensors as a conversion of the whole file, the same verdicts, and little memory.
#include "equivalence/verify/file_conversion.h"

#include "core/memory/allocator.h"
#include "equivalence/convert/state.h"
#include "tests/equivalence/gpt2.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/same_bytes.h"

namespace {

bool always() { return true; }

// Compares bit by bit. `summed`: products with Q [d, d - 1] are added in an order that depends on the number of rows.
void check_same(const LazyState& found, const TensorMap& expected, bool summed = false) {
  REQUIRE(found.outline.size() == expected.size());
  auto at = expected.begin();
  for (const auto& [name, outline] : found.outline) {
    INFO(name);
    CHECK(name == at->first);
    CHECK(outline.shape() == at->second.shape());
    const Tensor value = found.read(name);
    if (summed)
      CHECK(largest_entry(value - at->second) <= 4 * epsilon(value.dtype()) * largest_entry(value));
    else
      CHECK(::same_bytes(value, at->second));
    ++at;
  }
}

}  // namespace

TEST_CASE("conversion in pieces: the bytes of a conversion of the whole, in every form") {
  const TensorMap state = gpt2(9, 50);
  const streams::Plan plan = gpt2_plan(state, 9);
  for (Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    const Conversion whole = convert(state, plan, form);
    const bool summed = form == Form::crms_isometric;
    FileConversion pieces(state, plan, form, {}, 40);
    REQUIRE(pieces.check(always));
    CHECK(pieces.exact().equivalent());
    CHECK(pieces.stored()->equivalent());
    check_same(pieces.result(), whole.state, summed);
    check_same(pieces.result_in_f64(), whole.exact, summed);
    CHECK(pieces.changes().size() == whole.changes.size());
    for (const TensorChange& c : whole.changes) {
      INFO(c.name);
      CHECK(std::any_of(pieces.changes().begin(), pieces.changes().end(), [&](const TensorChange& t) {
        return t.name == c.name && t.what == c.what && t.before == c.before && t.after == c.after;
      }));
    }
    // The comparison of verify: the same share of the bound to the last bit, because rows are compared in the same way.
    const EntryComparison entries = compare_entries(widened(state), plan, whole.exact, whole.plan);
    if (!summed) CHECK(entries.share == pieces.exact().entries.share);
    // And back: the means of rms_norm's writers are judged relative to the largest entry of all pieces.
    FileConversion back(whole.state, whole.plan, Form::layer_norm, {}, 40);
    REQUIRE(back.check(always));
    CHECK(back.exact().equivalent());
    check_same(back.result(), convert(whole.state, whole.plan, Form::layer_norm).state, summed);
  }
}

TEST_CASE("conversion in pieces: a mistake in one slice is found") {
  const TensorMap state = gpt2(9, 50);
  const streams::Plan plan = gpt2_plan(state, 9);
  const auto with = [&](const std::string& name, int64_t flat, float value) {
    TensorMap changed;
    for (const auto& [n, t] : state) {
      Tensor copy = isonorm::contiguous(t) + 0.0;
      if (n == name) copy.mutable_data<float>()[flat] = value;
      changed.add(n, copy);
    }
    return changed;
  };
  const TensorMap nan = with("wte.weight", 9 * 49 + 3, NAN);
  CHECK_THROWS_WITH(FileConversion(nan, plan, Form::rms_norm, {}, 40).check(always),
                    Contains("'wte.weight' holds NaN"));
  streams::Plan rms = plan;
  rms.form = Form::rms_norm;
  CHECK_THROWS_WITH(FileConversion(state, rms, Form::crms_norm, {}, 40).check(always),
                    Contains("'wte.weight' has a mean of up to"));
  CHECK_THROWS_WITH(FileConversion(state, plan, Form::layer_norm), Contains("already"));
  int pieces = 0;
  CHECK_FALSE(FileConversion(state, plan, Form::crms_norm, {}, 40).check([&] { return ++pieces < 4; }));
}

TEST_CASE("verify in pieces: two are cut alike, into pieces that are small enough in both") {
  const TensorMap wide = gpt2(9, 50);
  const streams::Plan plan = gpt2_plan(wide, 9);
  const Conversion narrow = convert(wide, plan, Form::crms_norm);
  constexpr int64_t most = 40;  // 4 slices of 9 numbers, or 5 of 8
  for (const UnitPair& pair : in_pairs(units_of(wide, plan, most), units_of(narrow.state, narrow.plan, most)))
    for (const auto& [units, state] : {std::pair(&pair.a, &wide), {&pair.b, &narrow.state}})
      for (const Unit& u : *units) CHECK(u.block * (state->at(u.names.front()).numel() / u.slices) <= most);
}

TEST_CASE("verify in pieces: memory holds the pieces and the tables of both files") {
  const int64_t width = 512, rows = 20000;
  const Tensor table = randn({100, width}, {DType::f32});
  TensorMap names = gpt2(width, 100), outline_only;
  for (const auto& [name, t] : names)
    outline_only.add(name, outline(name == "wte.weight" ? Dims{rows, width} : t.shape(), t.dtype()));
  const auto file = [&](float by) {
    return LazyState(outline_only, [&names, &table, by](const std::string& name) {
      if (name != "wte.weight") return names.at(name);
      Tensor whole = isonorm::repeat(table, {rows / 100, 1});
      whole.mutable_data<float>()[12345 * width + 6] += by;
      return whole;
    });
  };
  const streams::Plan plan = gpt2_plan(outline_only, width);
  const int64_t largest = rows * width * 4;
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  const StateComparison c = compare_states(file(0), plan, file(1), plan);
  CHECK_THAT(c.entries.reason,
             Contains("[12345"));  // the entry itself, or its effect on the head's bias through the norm's bias
  CHECK_FALSE(c.readers.explained());
  INFO(host_allocator().stats().peak - before << " bytes, the largest tensor has " << largest);
  CHECK(host_allocator().stats().peak - before < 2 * largest + (int64_t{64} << 20));
}

TEST_CASE("conversion in pieces: memory holds the result and at most twice the largest tensor") {
  const int64_t width = 512, rows = 20000;
  const Tensor table = randn({100, width}, {DType::f32});
  TensorMap names = gpt2(width, 100), outline_only;
  for (const auto& [name, t] : names)
    outline_only.add(name, outline(name == "wte.weight" ? Dims{rows, width} : t.shape(), t.dtype()));
  const LazyState state(outline_only, [&](const std::string& name) {
    return name == "wte.weight" ? isonorm::repeat(table, {rows / 100, 1}) : names.at(name);
  });
  const int64_t largest = rows * width * 4;
  FileConversion pieces(state, gpt2_plan(outline_only, width), Form::crms_norm);
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  REQUIRE(pieces.check(always));
  const LazyState result = pieces.result();
  for (const auto& [name, shape] : result.outline) result.read(name);
  INFO(host_allocator().stats().peak - before << " bytes, the largest tensor has " << largest);
  CHECK(host_allocator().stats().peak - before < 2 * largest + (int64_t{128} << 20));
}
