// The verdict on two files: a change of any single entry is detected; conversion and rounding are accepted; and changes
// that the function cannot depend on are ignored.
#include "equivalence/convert/state.h"
#include "streams/plan.h"
#include "tests/equivalence/model_files.h"
#include "tests/model_cases/model_case.h"

using Catch::Matchers::EndsWith;

namespace {

constexpr Form kForms[] = {Form::layer_norm, Form::rms_norm, Form::crms_norm, Form::crms_isometric};
constexpr Form kMapped[] = {Form::rms_norm, Form::crms_norm, Form::crms_isometric};

// A file and the plan of its tensors.
struct Held {
  Held(const ModelFile& f) : file(f), plan(streams::plan_of(*ModelOptions(f.description).build())) {}
  ModelFile file;
  streams::Plan plan;
};

EntryComparison entries(const Held& a, const Held& b) {
  return compare_entries(a.file.state, a.plan, b.file.state, b.plan);
}

// The rows of the table that are pre_ln and can be converted, and models in other forms.
std::vector<ModelFile> kinds(uint64_t seed, DType dtype) {
  manual_seed(seed);
  std::vector<ModelFile> all;
  for (const test::ModelCase& c : test::model_cases())
    if (c.model.transformer().connection == nn::kPreLn && !c.refused.contains(test::Promise::convert))
      all.push_back(filled_file(*c.model.make(), dtype));
  for (Form form : kMapped) {  // tied heads that read a mapped table, and gains on raw weights of other forms
    const ModelFile tied = file_of(small_gpt({}, true), {.form = form, .storage = streams::Stored::mapped}, dtype);
    if (form != Form::rms_norm) all.push_back(tied);
    all.push_back(file_of(small_gpt({.affine = true}, true), {.form = form}, dtype));
  }
  return all;
}

// The distance from |x| to the next larger number of the dtype.
double ulp(double x, DType dtype) {
  return std::ldexp(epsilon(dtype), x == 0 ? (dtype == DType::f64 ? -1022 : -126) : std::ilogb(x));
}

// Moves a random entry of a tensor by `ulps` ulps of the largest entry of its slice along the stream, plus
// `more_at_the_end` if it is the last entry of a writer's slice. Empty if the function does not depend on the entry.
std::optional<Held> moved(Held held, const std::string& name, double ulps, double more_at_the_end,
                          Generator& generator) {
  const Tensor& t = held.file.state.at(name);
  const int64_t flat = static_cast<int64_t>(randint(0, t.numel(), {1}, kCpu, generator).item());
  if (const auto blind = held.plan.blind.find(name);
      blind != held.plan.blind.end() && flat >= blind->second[0] && flat < blind->second[1])
    return {};
  const int dim = std::max(0, held.plan.dim_of(name));
  const bool last = held.plan.writer(name) != nullptr;
  int64_t inner = 1;
  for (int i = dim + 1; i < t.rank(); ++i) inner *= t.size(i);
  const int64_t at = flat / inner % t.size(dim), first = flat - at * inner;
  const std::vector<double> values = t.to(DType::f64).to_vector<double>();
  double largest = 0;
  for (int64_t i = 0; i < t.size(dim); ++i) largest = std::max(largest, std::abs(values[first + i * inner]));
  if (last && at == t.size(dim) - 1) ulps += more_at_the_end;
  const double sign = randint(0, 2, {1}, kCpu, generator).item() > 0 ? 1 : -1;
  held.file = edited(held.file, name, [&](auto& v) { v[flat] += sign * ulps * ulp(largest, t.dtype()); });
  return held;
}

std::string what(const ModelFile& file) {
  std::string s;
  for (const char* key :
       {"kind", "stream", "storage", "affine", "bias", "tied", "positions", "activation", "layer_scale", "mean_pool"})
    if (const auto at = file.description.find(std::string("model.") + key); at != file.description.end())
      s += text(key, " ", at->second, " ");
  return s;
}

ModelFile gpt_file(nn::GptOptions options, DType dtype = DType::f32) {
  manual_seed(21);
  return file_of(options, {}, dtype);
}

// The files must differ, with `part` in the sentence, in both orders.
void check_different(const ModelFile& a, const ModelFile& b, const std::string& part) {
  for (const auto& [x, y] : {std::pair(&a, &b), {&b, &a}}) {
    const Verification v = verify_models(*x, *y);
    INFO(v.sentence());
    CHECK_FALSE(v.equivalent());
    CHECK_THAT(v.sentence(), Contains("different: ") && Contains(part));
  }
}

template <class T> Tensor values(std::vector<T> v) { return from_vector(v, {static_cast<int64_t>(v.size())}); }

}  // namespace

TEST_CASE("verify: one entry of any tensor, in any model and form, moved by 16 ulp of its slice is seen") {
  int changes = 0;
  Generator generator{7, 0};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    // In f64 the comparison's own arithmetic has errors of a few ulps.
    const int ulps = dtype == DType::f64 ? 64 : 16;
    const std::vector<ModelFile> files = kinds(3, dtype);
    for (size_t k = 0; k < files.size(); k += dtype == DType::f32 ? 1 : 5) {
      const Held source(files[k]);
      const auto is = [&](const char* option, const char* value) {
        return source.file.description.at(option) == std::string(value);
      };
      // After a layer scale near 0, errors of f64 arithmetic hide the entry.
      if (dtype == DType::f64 && !is("model.layer_scale", "0")) continue;
      for (Form form : kForms) {
        if (form != Form::layer_norm && (form == source.plan.form || form != kForms[1 + k / 2 % 3])) continue;
        const bool same_form = form == Form::layer_norm;
        const Held held = same_form ? source : Held(converted(source.file, form));
        const auto see = [&](const Held& from, double more, const Held& other) {
          for (const auto& [name, tensor] : from.file.state) {
            INFO(what(held.file) << " from " << what(source.file) << name_of(dtype) << " " << name);
            const auto changed = moved(from, name, ulps, more, generator);
            if (!changed) continue;
            CHECK_FALSE(entries(other, *changed).equivalent());
            ++changes;
          }
        };
        see(held, 0, held);
        if (same_form || k % 4 != 0) continue;
        see(held, 0, source);
        // After a small gain or layer scale, rounding may remove a change of the source.
        if (is("model.affine", "false") && is("model.layer_scale", "0"))
          see(source, static_cast<double>(held.plan.width - 1) / 2, held);
      }
    }
  }
  INFO(changes);
  CHECK(changes >= 1000);
}

TEST_CASE("verify: honest conversions are the same, through one form or two, in every dtype") {
  int conversions = 0;
  size_t offset = 0;
  for (DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (uint64_t seed : {1, 2}) {
      const std::vector<ModelFile> files = kinds(seed, dtype);
      for (size_t k = offset++ % 6; k < files.size(); k += 6) {
        const Held start(files[k]);
        for (Form first : kForms) {
          if (first == start.plan.form) continue;
          const Held once(converted(start.file, first));
          for (Form second : kForms) {
            if (second == first) continue;
            const Held twice(converted(once.file, second));
            INFO(what(files[k]) << " to " << name_of(first) << " to " << name_of(second) << " " << name_of(dtype)
                                << " seed " << seed);
            for (const auto& [a, b] : {std::pair(&start, &once), {&once, &twice}, {&start, &twice}}) {
              const EntryComparison e = entries(*a, *b);
              INFO(e.reason);
              CHECK(e.equivalent());
              ++conversions;
            }
          }
        }
      }
    }
  CHECK(conversions >= 500);
}

TEST_CASE("verify: a position or an id of the vocabulary that random inputs need not show") {
  nn::GptOptions options = small_gpt({.affine = true});
  options.context = 400, options.vocab = 3000, options.transformer.depth = 1;
  const ModelFile file = gpt_file(options);
  const auto row = [](int64_t r) {
    return [r](std::vector<double>& v) {
      std::reverse(v.begin() + 8 * r, v.begin() + 8 * r + 8);
      for (int64_t i = 8 * r; i < 8 * r + 8; ++i) v[i] *= 5;
    };
  };
  const ModelFile position = edited(file, "position.weight", row(300)), id = edited(file, "token.weight", row(2999));
  for (const auto& [forged, name] : {std::pair(&position, "position.weight[300, "), {&id, "token.weight[2999, "}}) {
    const Verification v = verify_models(file, *forged);
    CHECK_THAT(v.sentence(), Contains(name) && Contains("in the first and"));
    CHECK_FALSE(v.entries.equivalent());
    CHECK_FALSE(v.outputs.at(0).explained());  // the logits alone show it, too, since every id and position occurs
  }
  const Verification twice = verify_models(file, file);
  CHECK(twice.equivalent());
  CHECK(twice.sentence() == "equivalent: the two are one function. Every tensor is equal to the last bit.");
}

TEST_CASE("verify: options and eps are equal or not, whatever the logits say") {
  const ModelFile file = gpt_file(small_gpt({.affine = true}));
  check_different(file, with_option(file, "eps", "1.1e-5"), "Their options differ: eps 1");
  CHECK(verify_models(file, with_option(file, "eps", "0.00001")).equivalent());   // another text for the same number
  CHECK(verify_models(file, with_option(file, "head_width", "0")).equivalent());  // the default: width / heads
  CHECK(verify_models(file, with_option(file, "dropout", "0.1")).equivalent());   // only acts in training
  CHECK(verify_models(file, with_option(file, "rotary_base", "500")).equivalent());
  CHECK(verify_models(file, with_option(file, "qkv_bias", "true")).equivalent());  // they exist in any case
  check_different(file, with_option(file, "activation", "gelu_tanh"), "Their options differ: activation gelu");
  const ModelFile heads = with_option(with_option(with_option(file, "heads", "4"), "head_width", "2"), "kv_heads", "4");
  check_different(file, heads, "every entry agrees, but not the logits");
  CHECK_THROWS_WITH(verify_models(file, with_option(file, "mlp_width", "17")),
                    Contains("the second file describes a model whose 'blocks.0.mlp.fc1.weight' has shape [17, 8], and "
                             "holds it with shape ["));
  CHECK_THROWS_WITH(
      verify_models(with_option(file, "depth", "3"), file),
      Contains("the first file describes a model with a tensor 'blocks.2.norm1.weight' of shape [8], which it "
               "does not hold"));
  const ModelFile rotary = gpt_file(small_gpt({.positions = nn::Positions::rotary}));
  check_different(rotary, with_option(rotary, "positions", "none"), "Their options differ: positions ");
  check_different(rotary, with_option(rotary, "rotary_base", "10001"), "Their options differ: rotary_base 1000");
  check_different(rotary, with_option(rotary, "context", "7"), "Their options differ: context ");
}

TEST_CASE("verify: logits that differ are different, whatever was found before") {
  Verification v;
  v.entries.relation = EntryComparison::Relation::second_rounded;
  v.outputs = {output_deviation("logits of random inputs", 1e-9, 1e-9)};
  CHECK(v.equivalent());
  v.outputs.insert(v.outputs.begin(), output_deviation("logits of data", 1e-3, 1e-9));
  CHECK_FALSE(v.equivalent());
  CHECK(v.sentence() == "different: every entry agrees, but not the logits of data.");
}

TEST_CASE("verify: changes that the function cannot see are no difference") {
  const ModelFile file = gpt_file(small_gpt());
  const auto shifted = [](size_t begin, size_t end, double by) {
    return [=](std::vector<double>& v) {
      for (size_t i = begin; i < end; ++i) v[i] += by;
    };
  };
  const ModelFile keys = edited(file, "blocks.0.attn.qkv.bias", shifted(8, 16, 3));
  CHECK(verify_models(file, keys).equivalent());
  CHECK_THAT(verify_models(file, keys).sentence(),
             EndsWith("Except entries that no function sees: in the bias of attention's keys."));
  CHECK_FALSE(verify_models(file, converted(file, Form::crms_norm)).entries.blind);
  CHECK(verify_models(keys, converted(file, Form::crms_norm)).equivalent());
  const ModelFile f64 = gpt_file(small_gpt(), DType::f64), mean = edited(f64, "token.weight", shifted(0, 8, 1));
  CHECK(verify_models(f64, mean).equivalent());
  CHECK(verify_models(mean, converted(f64, Form::rms_norm)).equivalent());
  CHECK(verify_models(f64, edited(f64, "blocks.1.mlp.fc1.weight", shifted(8, 16, 2))).equivalent());

  // The function depends on key biases with rotary positions, on row sums after a gain, and on means without a final
  // norm.
  const ModelFile rotary = gpt_file(small_gpt({.positions = nn::Positions::rotary}));
  check_different(rotary, edited(rotary, "blocks.0.attn.qkv.bias", shifted(8, 16, 3)), "qkv.bias");
  const ModelFile affine = gpt_file(small_gpt({.affine = true}));
  check_different(affine, edited(affine, "blocks.1.mlp.fc1.weight", shifted(8, 16, 2)), "blocks.1.mlp.fc1.");
  const ModelFile bare = gpt_file(small_gpt({.final_norm = false}));
  check_different(bare, edited(bare, "token.weight", shifted(0, 8, 1)), "token.weight");
  // Slices of stored tensors are along the stream, too: row 2 of eight, column 5, is entry 2 of slice 5.
  check_different(bare, edited(bare, "blocks.0.attn.proj.weight", shifted(21, 22, 1)), "attn.proj.weight[2, 5] is");
  CHECK(verify_models(bare, bare).equivalent());
  const ModelFile rms = converted(file, Form::rms_norm);
  check_different(rms, edited(rms, "token.weight", shifted(0, 8, 1)), "token.weight");
  check_different(file, edited(rms, "token.weight", shifted(0, 8, 1)), "RMSNorm sees that mean");
}

TEST_CASE("verify: exchanged, permuted, transposed and turned tensors") {
  const ModelFile file = gpt_file(small_gpt({.affine = true}));
  const auto fc1 = [](int block) { return text("blocks.", block, ".mlp.fc1.weight"); };
  const Tensor first = file.state.at(fc1(0)), proj = file.state.at("blocks.0.attn.proj.weight");
  check_different(file, with_tensor(with_tensor(file, fc1(0), file.state.at(fc1(1))), fc1(1), first), "fc1.weight");
  check_different(file, with_tensor(file, "blocks.0.attn.proj.weight", contiguous(transpose(proj, 0, 1))),
                  "blocks.0.attn.proj.weight");
  const auto swap_rows = [](auto& v) { std::swap_ranges(v.begin(), v.begin() + 8, v.begin() + 8); };
  const auto change = [&](const std::string& name, auto&& f) { return edited(file, name, f); };
  check_different(file, change("token.weight", swap_rows), "token.weight");
  check_different(file, change("blocks.0.mlp.fc2.weight", [](auto& v) { v[5] = -v[5]; }), "blocks.0.mlp.fc2.weight");
  check_different(file, change("norm.bias", [](auto& v) { std::swap(v[0], v[1]); }), "head.bias");
  check_different(file, change("norm.weight", [](auto& v) { v[3] = 0; }), "head.weight");
  check_different(file, change("head.weight", [](auto& v) { v[0] = NAN; }), "'head.weight' of the");
  const ModelFile nan = change("head.weight", [](auto& v) { v[0] = INFINITY; });
  check_different(nan, nan, "NaN or infinity");
  const ModelFile more = with_tensor(file, "extra", file.state.at("norm.bias")),
                  less = with_tensor(file, "norm.bias", {});
  check_different(file, more, "has 'extra'");
  CHECK_THROWS_WITH(verify_models(file, less), Contains("a tensor 'norm.bias' of shape [8], which it does not hold"));

  // A permutation of hidden units is the same function. Entries do not show this, and logits do not prove it.
  const ModelFile columns = change("blocks.0.mlp.fc2.weight", [](auto& v) {
    for (size_t r = 0; r < 8; ++r) std::swap(v[32 * r], v[32 * r + 1]);
  });
  const ModelFile units =
      edited(edited(columns, fc1(0), swap_rows), "blocks.0.mlp.fc1.bias", [](auto& v) { std::swap(v[0], v[1]); });
  check_different(file, units, "no logits of random inputs show it, but the entries differ: blocks.0.mlp.fc");
}

TEST_CASE("verify: dtypes, zeros and extremes") {
  const ModelFile file = gpt_file(small_gpt({.affine = true}));
  ModelFile wide{widened(file.state), file.description, {}}, coarse{{}, file.description, {}};
  for (const auto& [name, tensor] : file.state) coarse.state.add(name, tensor.to(DType::bf16));
  CHECK(verify_models(file, wide).equivalent());
  CHECK(verify_models(file, coarse).equivalent());
  CHECK(verify_models(coarse, wide).equivalent());
  check_different(file, ModelFile{widened(coarse.state), file.description, {}},
                  "beyond what rounding explains");  // only the dtype is f64
  // Signs of zeros and subnormal numbers need no special rule.
  const auto first = [&](double value) { return edited(file, "token.weight", [=](auto& v) { v[0] = value; }); };
  CHECK(verify_models(first(0.0), first(-0.0)).equivalent());
  for (double value : {1e-40, 1e-30, 1e30}) {
    CHECK(entries(first(value), converted(first(value), Form::crms_norm)).equivalent());
  }
  // If only one coordinate is non-zero, every entry that crms_norm stores is -1/d with the same rounding error, and the
  // entry that it does not store is off by d - 1 times as much.
  nn::GptOptions six = small_gpt();
  six.transformer.width = 6;
  const ModelFile spikes = edited(gpt_file(six), "token.weight", [](auto& v) {
    for (size_t i = 0; i < v.size(); ++i) v[i] = i % 6 == 5 ? 0.1 * static_cast<double>(i) : 0;
  });
  const Verification v = verify_models(spikes, converted(spikes, Form::crms_norm));
  CHECK(v.equivalent());
  CHECK(v.entries.relation == EntryComparison::Relation::second_rounded);
}

TEST_CASE("verify: wide readers come back from crms_norm to f64, the coordinate that is not stored as well") {
  nn::GptOptions wide = small_gpt({.affine = true});
  wide.transformer.width = 256, wide.transformer.depth = 1, wide.transformer.mlp_width = 64;
  const ModelFile file = gpt_file(wide, DType::f64), there = converted(file, Form::crms_norm);
  CHECK(entries(file, there).equivalent());
  CHECK(entries(there, converted(there, Form::layer_norm)).equivalent());
}

TEST_CASE("verify: one coarse tensor does not move the others by its ulp") {
  ModelFile file = gpt_file(small_gpt());
  file = with_tensor(file, "blocks.1.attn.qkv.bias", file.state.at("blocks.1.attn.qkv.bias").to(DType::bf16));
  const ModelFile wrong = edited(file, "head.weight", [](auto& v) { v[7] += 0.02; });
  const Tensor inputs = ModelOptions(file.description).inputs(4, 1);
  const Deviation models = compare_models(file.description, file.state, wrong.description, wrong.state, inputs);
  INFO(models.size << " " << models.control);
  CHECK_FALSE(models.explained());
  const streams::Plan plan = Held(file).plan;
  const Deviation streams = compare_streams(file.state, plan, wrong.state, plan);
  INFO(streams.size << " " << streams.control);
  CHECK_FALSE(streams.explained());
  // One bf16 ulp for every weight would hide it from both comparisons.
  TensorMap coarse;
  for (const auto& [name, tensor] : file.state) coarse.add(name, tensor.to(DType::bf16));
  Generator generator{1, 0};
  const TensorMap inflated = moved_by_rounding(file.state, file.state, coarse, generator);
  const Deviation hides = compare_models(file.description, file.state, file.description, inflated, inputs);
  CHECK(models.size < 4 * hides.size);
  CHECK(streams.size < 4 * compare_streams(file.state, plan, inflated, plan).size);
}
