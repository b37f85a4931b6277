// Conversion from and to F16: verified by the bounds of its rounding; any larger deviation is detected.
#include <algorithm>
#include <cmath>

#include "equivalence/verify/file_conversion.h"
#include "io/half.h"
#include "tests/equivalence/gpt2.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/same_bytes.h"

namespace {

using Relation = EntryComparison::Relation;
constexpr int64_t kWidth = 9;
const NumberFormat kF16{DType::f32, true};

// The model; in F16 if `half`.
LazyState model(bool half) {
  LazyState state(gpt2(kWidth, 50));
  return half ? io::in_format(state, kF16) : state;
}

// The same file with the largest number of one tensor changed.
LazyState with(const LazyState& file, const std::string& name, const std::function<float(float)>& change) {
  LazyState changed = file;
  changed.read = [=](const std::string& n) {
    const Tensor t = file.read(n);
    if (n != name) return t;
    Tensor copy = t + 0.0;
    float* numbers = copy.mutable_data<float>();
    float& largest =
        *std::max_element(numbers, numbers + t.numel(), [](float x, float y) { return std::abs(x) < std::abs(y); });
    largest = change(largest);
    return copy;
  };
  return changed;
}

}  // namespace

TEST_CASE("F16: from F16 and from f32, to F16 and to f32, a conversion is one rounding to what is written") {
  for (const auto& [from_half, format] : {std::pair<bool, std::optional<NumberFormat>>(true, std::nullopt),
                                          {false, kF16},
                                          {true, NumberFormat(DType::f32)}})
    for (Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
      INFO(name_of(form) << ' ' << from_half);
      const LazyState file = model(from_half);
      const streams::Plan plan = gpt2_plan(file.outline, kWidth);
      FileConversion conversion(file, plan, form, format, 40);
      REQUIRE(conversion.check([] { return true; }));
      CHECK(conversion.exact().equivalent());
      CHECK(conversion.stored()->equivalent());
      const LazyState result = conversion.result();
      const bool to_half = !format || format->half;
      CHECK(result.half.size() == (to_half ? result.outline.size() : 0));
      for (const auto& [name, outline] : result.outline) {
        CHECK(outline.dtype() == DType::f32);
        const Tensor t = result.read(name);
        if (to_half) CHECK(::same_bytes(io::from_half(io::to_half(t)), t));  // all numbers are F16 numbers
      }
      // verify, for the two files.
      const streams::Plan after =
          streams::plan_in(streams::Layout::from_json(gpt2_spec(kWidth)), result.outline, form, true);
      const StateComparison c = compare_states(file, plan, result, after);
      CHECK(c.entries.relation == Relation::second_rounded);
      CHECK(c.readers.explained());
      CHECK(c.readers.format == (from_half || to_half ? kF16 : NumberFormat(DType::f32)));
      CHECK(compare_states(result, after, file, plan).entries.equivalent());
      if (!to_half) continue;
      // If the file claims to hold f32, rounding explains only 2^-13 of the deviation.
      LazyState silent = result;
      silent.half.clear();
      CHECK_FALSE(compare_states(file, plan, silent, after).entries.equivalent());
      // An entry off by three steps, and a mean that was not subtracted.
      const Steps steps(kF16);
      const auto moved = [&](float x) { return static_cast<float>(x + 3 * steps.at(x)); };
      for (const char* name : {"wte.weight", "h.0.mlp.c_fc.weight", "h.0.attn.c_proj.bias"}) {
        INFO(name);
        CHECK_FALSE(compare_states(file, plan, with(result, name, moved), after).entries.equivalent());
      }
      if (form != Form::rms_norm) continue;
      LazyState raw = result;
      raw.read = [&](const std::string& name) { return (name == "h.0.mlp.c_proj.weight" ? file : result).read(name); };
      CHECK_FALSE(compare_states(file, plan, raw, after).entries.equivalent());
    }
}

TEST_CASE("F16: a number beyond it is refused with the tensor, the number and the largest one") {
  const LazyState file = with(model(false), "wpe.weight", [](float) { return 90000.f; });
  const streams::Plan plan = gpt2_plan(file.outline, kWidth);
  CHECK_THROWS_WITH(FileConversion(file, plan, Form::rms_norm, kF16).check([] { return true; }),
                    Contains("'wpe.weight' holds ") && Contains("which does not fit f16: its largest number is 65504"));
}

TEST_CASE("F16: two files of one form, one rounded from the other, and numbers that no stream touches") {
  const std::string spec = R"({"width": 6, "norms": {"n": 1e-5}, "writers": {"w": 0}, "others": ["inner"],
    "readers": {"r.weight": {"dim": 1, "norm": "n"}}})";
  Generator generator{7, 0};
  TensorMap numbers;
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Dims>>{{"w.weight", {6, 4}}, {"r.weight", {3, 6}}, {"inner", {5}}})
    numbers.add(name, randn(shape, {DType::f32}, generator) * 1e-6);  // mostly subnormal in F16
  const LazyState fine(numbers), coarse = io::in_format(fine, kF16);
  const auto plan = streams::plan_in(streams::Layout::from_json(spec), numbers, Form::layer_norm);
  CHECK(compare_entries(fine, plan, coarse, plan).relation == Relation::second_rounded);
  CHECK(compare_entries(coarse, plan, fine, plan).relation == Relation::first_rounded);
  CHECK(compare_entries(coarse, plan, coarse, plan).relation == Relation::identical);
  LazyState widened = coarse;
  widened.half.clear();
  CHECK(compare_entries(coarse, plan, widened, plan).relation == Relation::second_rounded);
  const auto up = [](float x) { return x + 0x1p-24f; };
  CHECK_THAT(compare_entries(fine, plan, with(coarse, "inner", up), plan).reason,
             Contains("'inner', which must be equal to the last bit"));
  const auto far = [](float x) { return x + 4 * 0x1p-24f; };
  CHECK_FALSE(compare_entries(fine, plan, with(coarse, "r.weight", far), plan).equivalent());
}
