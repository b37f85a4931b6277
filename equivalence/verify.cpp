#include "equivalence/verify.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/stream_check.h"
#include "equivalence/trainee.h"

namespace isonorm::equivalence {
namespace {

using nn::StreamForm;
using nn::StreamStorage;

constexpr uint64_t kSeed = 2305;  // of the rows of the stream check
constexpr uint64_t kControls = 2;

constexpr int64_t kBlock = int64_t{1} << 23;  // numbers of logits that are held at once, or one row of inputs

DType coarser(DType a, DType b) { return epsilon(a) >= epsilon(b) ? a : b; }

std::unique_ptr<nn::Module> loaded(const Metadata& description, const TensorMap& state) {
  const ModelOptions options(description);
  options.check_size(state);
  std::unique_ptr<nn::Module> model = options.build();
  model->load_state_dict(widened(state));
  return model;
}

// max |x - y| and max |x| over blocks.
struct Distance {
  double difference = 0, size = 0;
  void add(const Tensor& x, const Tensor& y) {
    difference = larger(difference, largest_entry(x - y)), size = larger(size, largest_entry(x));
  }
  double relative() const { return difference == 0 ? 0 : difference / size; }
};

// Throws where a tensor of the file is not of the shape that the described model has. Missing and unexpected ones are
// left to convert().
void check_shapes(const nn::Module& model, const TensorMap& state) {
  for (const nn::Parameter& p : model.named_parameters())
    if (const Tensor* t = state.find(p.name))
      check(t->shape() == p.tensor.shape(), "convert: tensor '", p.name, "' has shape ", t->shape(),
            ", the model that the file describes has ", p.tensor.shape());
}

// The options of the result; see docs/conversion.md.
ModelOptions converted_options(ModelOptions o, StreamForm to) {
  nn::TransformerOptions& t = o.transformer();
  t.stream = to;
  t.storage = to == StreamForm::layer_norm ? StreamStorage::raw : StreamStorage::mapped;
  t.bias = t.bias || t.affine;  // the norms' biases become biases of the readers
  t.affine = t.centre_readers = false;
  t.branch = {.stochastic_depth = t.branch.stochastic_depth};
  o.gpt_options().tied = false;
  return o;
}

// Adds the biases that the new model has and the old one had not, as zeros; puts everything in the new model's order.
void complete(Conversion& c, const nn::Module& model, DType dtype) {
  TensorMap exact, state;
  const Layout whole = layout_of(model);
  for (const nn::Parameter& p : model.named_parameters()) {
    const Tensor* there = c.exact.find(p.name);
    if (!there) {
      check(p.name.ends_with("bias"), "convert: nothing became '", p.name, "' of the converted model");
      c.changes.push_back({p.name, "created: zeros", {}, p.tensor.shape()});
      for (const Place& place : whole.places)
        if (place.name == p.name) c.layout.places.push_back(place);
    }
    exact.add(p.name, there ? *there : zeros(p.tensor.shape(), {DType::f64}));
    state.add(p.name, there ? c.state.at(p.name) : zeros(p.tensor.shape(), {dtype}));
  }
  c.exact = std::move(exact), c.state = std::move(state);
}

}  // namespace

double Agreement::bound() const { return 4 * control + 64 * epsilon(DType::f64); }

ModelConversion convert_model(const ModelFile& file, StreamForm to, const ModelConversionOptions& o) {
  const ModelOptions options(file.description);
  options.check_size(file.state);
  const nn::BranchOptions& branch = options.transformer().branch;
  check(branch.dropout == 0 || o.inference, "convert: dropout ", branch.dropout,
        " acts on the branches before they are recentred, which weights that are centred already cannot follow in "
        "training; for inference alone it can be left out");
  const std::unique_ptr<nn::Module> model = options.build();
  check_shapes(*model, file.state);
  ModelConversion result{convert(file.state, layout_of(*model), to, o.dtype), {}};
  const std::unique_ptr<nn::Module> converted = converted_options(options, to).build();
  complete(result.conversion, *converted, o.dtype.value_or(coarsest(file.state)));
  result.description = describe(*converted);
  return result;
}

Tensor logits(const Metadata& description, const TensorMap& state, const Tensor& inputs) {
  NoGrad no_grad;
  return (*loaded(description, state))(inputs);
}

Agreement compare_models(const Metadata& description_a, const TensorMap& a, const Metadata& description_b,
                         const TensorMap& b, const Tensor& inputs) {
  NoGrad no_grad;
  const std::unique_ptr<nn::Module> first = loaded(description_a, a);
  const std::unique_ptr<nn::Module> second = loaded(description_b, b);
  std::vector<std::unique_ptr<nn::Module>> moved_a, moved_b;
  for (uint64_t seed = 1; seed <= kControls; ++seed) {
    moved_a.push_back(loaded(description_a, moved_by_rounding(a, b, seed)));
    moved_b.push_back(loaded(description_b, moved_by_rounding(b, a, seed)));
  }
  for (nn::Module* model : {first.get(), second.get()}) model->prepare_inference();  // so that weights are mapped once
  for (const auto* moved : {&moved_a, &moved_b})
    for (const auto& model : *moved) model->prepare_inference();
  Distance distance;
  std::vector<Distance> controls(2 * kControls);
  int64_t done = 0, rows = 1;
  while (done < inputs.size(0)) {
    const Tensor block = narrow(inputs, 0, done, std::min(rows, inputs.size(0) - done)), expected = (*first)(block),
                 found = (*second)(block);
    check(expected.shape() == found.shape(), "verify: the first gives logits of shape ", expected.shape(),
          ", the second ", found.shape());
    distance.add(expected, found);
    for (size_t i = 0; i < kControls; ++i) {
      controls[2 * i].add(expected, (*moved_a[i])(block));
      controls[2 * i + 1].add(found, (*moved_b[i])(block));
    }
    done += block.size(0);
    rows = std::max(int64_t{1}, kBlock / std::max(int64_t{1}, expected.numel() / block.size(0)));
  }
  Agreement agreement{.deviation = distance.relative(), .dtype = coarser(coarsest(a), coarsest(b))};
  for (const Distance& control : controls) agreement.control = larger(agreement.control, control.relative());
  return agreement;
}

Agreement compare_streams(const TensorMap& a, const Layout& layout_a, const TensorMap& b, const Layout& layout_b,
                          std::map<std::string, double>* of) {
  const StreamDeviation deviation = stream_deviation(a, layout_a, b, layout_b, kSeed);
  if (of) *of = deviation.of;
  Agreement agreement{.deviation = deviation.worst, .dtype = coarser(coarsest(a), coarsest(b))};
  const auto control = [&](const TensorMap& state, const Layout& layout, const TensorMap& partner, uint64_t seed) {
    const double moved = stream_deviation(state, layout, moved_by_rounding(state, partner, seed), layout, kSeed).worst;
    agreement.control = larger(agreement.control, moved);
  };
  for (uint64_t seed = 1; seed <= kControls; ++seed) control(a, layout_a, b, seed), control(b, layout_b, a, seed);
  return agreement;
}

DType coarsest(const TensorMap& state) {
  DType found = DType::f64;
  for (const auto& [name, tensor] : state)
    if (is_floating(tensor.dtype()) && epsilon(tensor.dtype()) > epsilon(found)) found = tensor.dtype();
  return found;
}

}  // namespace isonorm::equivalence
