// The verdict on two files: one changed entry anywhere is seen, what conversion and rounding do is not, and what a
// function cannot see is not held against it.
#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "equivalence/layout_spec.h"
#include "tests/equivalence/model_files.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::test;
using Catch::Matchers::Contains;
using nn::Role;
using nn::StreamForm;

namespace {

constexpr StreamForm kForms[] = {StreamForm::layer_norm, StreamForm::rms_norm, StreamForm::crms_norm,
                                 StreamForm::crms_isometric};
constexpr StreamForm kMapped[] = {StreamForm::rms_norm, StreamForm::crms_norm, StreamForm::crms_isometric};

Layout layout_of_file(const ModelFile& file) { return layout_of(*ModelOptions(file.description).build()); }

// Every kind of model: learned and rotary positions, affine and plain norms, tied head, class token and mean pool,
// SwiGLU, layer scale.
std::vector<ModelFile> kinds(uint64_t seed, DType dtype) {
  manual_seed(seed);
  std::vector<ModelFile> all;
  using T = nn::TransformerOptions;
  const T plain{}, affine{.affine = true}, no_bias{.affine = true, .bias = false},
      rotary{.positions = nn::Positions::rotary, .affine = true},
      llama{.activation = nn::Activation::swiglu, .positions = nn::Positions::rotary, .branch = {.layer_scale = 0.5}},
      scaled{.affine = true, .branch = {.layer_scale = 0.5}};
  for (const T& t : {plain, affine, no_bias, rotary, llama, scaled})
    for (bool tied : {false, true}) {
      nn::Gpt gpt(small_gpt(t, tied));
      all.push_back(filled_file(gpt, dtype));
    }
  for (T t : {plain, affine, scaled, llama})
    for (bool pool : {false, true}) {
      if (t.positions == nn::Positions::rotary) t.positions = nn::Positions::none;  // heads of width 3 cannot turn
      nn::Vit vit(small_vit(t, pool));
      all.push_back(filled_file(vit, dtype));
    }
  for (StreamForm form : kMapped) {  // a tied head that reads a mapped table, and gains on raw weights of another form
    nn::Gpt tied(small_gpt({.stream = form, .storage = nn::StreamStorage::mapped}, true));
    ModelFile file = filled_file(tied, dtype);
    if (form != StreamForm::rms_norm) all.push_back(file);
    nn::Gpt raw(small_gpt({.affine = true, .stream = form}, true));
    all.push_back(filled_file(raw, dtype));
  }
  return all;
}

ModelFile converted(const ModelFile& file, StreamForm to, std::optional<DType> dtype = {}) {
  const ModelConversion c = convert_model(file, to, {.dtype = dtype});
  return {c.conversion.state, c.description, {}};
}

EntryComparison entries(const ModelFile& a, const ModelFile& b) {
  return compare_entries(a.state, layout_of_file(a), b.state, layout_of_file(b));
}

// The distance from |x| to the next larger number of the dtype.
double ulp(double x, DType dtype) { return std::ldexp(epsilon(dtype), std::ilogb(x)); }

Tensor with_entry(const Tensor& t, int64_t flat, double value) {
  std::vector<double> values = cast(t, DType::f64).to_vector<double>();
  values[static_cast<size_t>(flat)] = value;
  return cast(from_span(std::span<const double>(values), t.shape()), t.dtype());
}

ModelFile with_tensor(const ModelFile& file, const std::string& name, const Tensor& value) {
  ModelFile changed{{}, file.description, file.other};
  for (const auto& [key, tensor] : file.state) changed.state.add(key, key == name ? value : tensor);
  return changed;
}

// The file with one random entry of one tensor moved by `ulps` of the largest entry of its slice along the stream, more
// by `more_at_the_end` where it is the last one of a writer's slice. Nothing where the function cannot see it.
std::optional<ModelFile> moved(const ModelFile& file, const Layout& layout, const std::string& name, double ulps,
                               double more_at_the_end, Generator& generator) {
  const Tensor& t = file.state.at(name);
  const int64_t flat = static_cast<int64_t>(randint(0, t.numel(), {1}, kCpu, generator).item());
  int dim = 0;
  bool last = false;
  for (const Place& p : layout.places) {
    if (p.name != name) continue;
    if (flat >= p.blind_begin && flat < p.blind_end) return {};
    if (p.role == Role::neutral) continue;
    dim = p.dim;
    last = p.role == Role::writer;
  }
  int64_t inner = 1;
  for (int i = dim + 1; i < t.rank(); ++i) inner *= t.size(i);
  const int64_t at = flat / inner % t.size(dim), first = flat - at * inner;
  const std::vector<double> values = cast(t, DType::f64).to_vector<double>();
  double largest = 0;
  for (int64_t i = 0; i < t.size(dim); ++i) largest = std::max(largest, std::abs(values[first + i * inner]));
  if (last && at == t.size(dim) - 1) ulps += more_at_the_end;
  const double sign = randint(0, 2, {1}, kCpu, generator).item() > 0 ? 1 : -1;
  return with_tensor(file, name, with_entry(t, flat, values[flat] + sign * ulps * ulp(largest, t.dtype())));
}

std::string what(const ModelFile& file) {
  std::string s;
  for (const char* key :
       {"kind", "stream", "storage", "affine", "bias", "tied", "positions", "activation", "layer_scale", "mean_pool"})
    if (const auto at = file.description.find(std::string("model.") + key); at != file.description.end())
      s += text(key, " ", at->second, " ");
  return s;
}

}  // namespace

TEST_CASE("verify: one entry of any tensor, in any model and form, moved by 16 ulp of its slice is seen") {
  int changes = 0;
  Generator generator{7, 0};
  for (DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const ModelFile& file : kinds(3, dtype))
      for (StreamForm form : kForms) {
        const Layout source_layout = layout_of_file(file);
        if (form == StreamForm::layer_norm ? false : form == source_layout.form) continue;
        const ModelFile held = form == StreamForm::layer_norm ? file : converted(file, form);
        const Layout layout = layout_of_file(held);
        const double width = static_cast<double>(layout.width);
        for (const auto& [name, tensor] : held.state) {
          INFO(what(held) << " from " << what(file) << name_of(dtype) << " " << name);
          const auto changed = moved(held, layout, name, 16, 0, generator);
          if (!changed) continue;
          CHECK_FALSE(compare_entries(held.state, layout, changed->state, layout).same());
          CHECK_FALSE(compare_entries(changed->state, layout, held.state, layout).same());
          if (form != StreamForm::layer_norm)
            CHECK_FALSE(compare_entries(file.state, source_layout, changed->state, layout).same());
          ++changes;
        }
        if (form == StreamForm::layer_norm) continue;
        for (const auto& [name, tensor] : file.state) {  // the source changed, and the file of the other form not
          INFO(what(file) << " to " << what(held) << name_of(dtype) << " " << name);
          const auto changed = moved(file, source_layout, name, 16, (width - 1) / 2, generator);
          if (!changed) continue;
          CHECK_FALSE(compare_entries(changed->state, source_layout, held.state, layout).same());
          ++changes;
        }
      }
  INFO(changes);
  CHECK(changes >= 500);
}

TEST_CASE("verify: honest conversions are the same, through one form or two, in every dtype") {
  int conversions = 0, relations[6] = {};
  double worst = 0;
  for (DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (uint64_t seed : {1, 2})
      for (const ModelFile& file : kinds(seed, dtype))
        for (StreamForm first : kForms) {
          if (first == layout_of_file(file).form) continue;
          const ModelFile once = converted(file, first);
          for (StreamForm second : kForms) {
            if (second == first) continue;
            const ModelFile twice = converted(once, second);
            INFO(what(file) << " to " << nn::name_of(first) << " to " << nn::name_of(second) << " " << name_of(dtype)
                            << " seed " << seed);
            for (const auto& [a, b] : {std::pair(&file, &once), {&once, &twice}, {&file, &twice}}) {
              const EntryComparison e = entries(*a, *b);
              INFO(e.reason);
              CHECK(e.same());
              ++relations[static_cast<size_t>(e.relation)];
              worst = std::max(worst, e.share);
              ++conversions;
            }
          }
        }
  CHECK(conversions >= 500);
  WARN(conversions << " relations " << relations[0] << " " << relations[1] << " " << relations[2] << " " << relations[3]
                   << " " << relations[4] << " " << relations[5] << " worst " << worst);
}
