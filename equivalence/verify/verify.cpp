#include "equivalence/verify/verify.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/state.h"
#include "streams/parametrize.h"
#include "training/model_options.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;
using streams::Stored;

constexpr int64_t kBlock = int64_t{1} << 23;  // most logits, or one row of inputs, that are computed at once

// The model in f64 with the tensors of the state, each changed by `change` when it is read.
template <class F> std::unique_ptr<nn::Module> loaded(const Metadata& description, const LazyState& state, F&& change) {
  const training::ModelOptions options(description);
  options.check_size(state.outline);
  std::unique_ptr<nn::Module> model = options.build();
  TensorMap in_f64;
  for (const auto& [name, like] : state.outline) in_f64.add(name, outline(like.shape(), DType::f64));
  model->load_state_dict(in_f64);  // names and shapes are checked there
  const TensorMap parameters = model->state_dict();
  for (const auto& [name, shape] : state.outline) {
    TensorMap one;
    one.add(name, state.read(name));
    copy_into(parameters.at(name), change(one).at(name));
  }
  return model;
}

std::unique_ptr<nn::Module> loaded(const Metadata& description, const LazyState& state) {
  return loaded(description, state, [](const TensorMap& one) { return widened(one); });
}

std::unique_ptr<nn::Module> moved(const Metadata& description, const LazyState& state, const LazyState& partner,
                                  uint64_t seed) {
  Generator generator{seed, 0};
  return loaded(description, state,
                [&](const TensorMap& one) { return moved_by_rounding(one, state, partner, generator); });
}

// max |x - y| and max |x| over blocks.
struct Distance {
  double difference = 0, size = 0;
  void add(const std::vector<Tensor>& xs, const std::vector<Tensor>& ys) {
    for (size_t i = 0; i < xs.size(); ++i) {
      check(xs[i].shape() == ys[i].shape(), "verify: the first gives logits of shape ", xs[i].shape(), ", the second ",
            ys[i].shape());
      difference = larger(difference, largest_entry(xs[i] - ys[i])), size = larger(size, largest_entry(xs[i]));
    }
  }
  double relative() const { return difference == 0 ? 0 : difference / size; }
};

// Throws if a tensor of the file has another shape than in the described model. convert() reports missing and
// unexpected tensors.
void check_shapes(const nn::Module& model, const TensorMap& state) {
  for (const streams::NamedParameter& p : streams::named_parameters(model))
    if (const Tensor* t = state.find(p.name))
      check(t->shape() == p.tensor.shape(), "convert: tensor '", p.name, "' has shape ", t->shape(),
            ", the model that the file describes has ", p.tensor.shape());
}

// The options of the result; see docs/conversion.md.
training::ModelOptions converted_options(training::ModelOptions o, const streams::Plan& from, Form to) {
  nn::TransformerOptions& t = o.transformer();
  o.stream() = {.form = to, .storage = row_of(to).raw() ? Stored::raw : Stored::mapped};
  const auto any = [&](auto&& has) { return std::ranges::any_of(from.norms, has); };
  // Biases of norms become their readers' biases.
  if (any([](const streams::Plan::Norm& n) { return !n.bias.empty(); })) t.bias = true, o.fit({{"head_bias", true}});
  // Gains that no reader takes up stay.
  t.folded = t.affine && (t.connection.inner_norms || t.qk_norm != NormKind::none ||
                          any([](const streams::Plan::Norm& n) { return n.keeps_gain; }));
  t.affine = t.folded;
  t.scaled_gains = false;
  t.norm_bias = t.norm_bias || !t.affine;  // has no effect without a gain
  t.branch = {.stochastic_depth = t.branch.stochastic_depth};
  if (std::ranges::any_of(from.readers, &streams::Plan::Reader::tied)) o.fit({{"tied", false}});
  return o;
}

// Adds the biases that the new model has and the old one did not have, as zeros, and puts all tensors in the new
// model's order.
void complete(Conversion& c, const ModelPlan& plan, NumberFormat format) {
  TensorMap exact, state;
  for (const auto& [name, tensor] : plan.outline) {
    const Tensor* there = c.exact.find(name);
    if (!there) {
      check(name.ends_with("bias"), "convert: no tensor of the source became '", name, "' of the converted model");
      c.changes.push_back({name, "created: zeros", {}, tensor.shape()});
    }
    exact.add(name, there ? *there : zeros(tensor.shape(), {DType::f64}));
    state.add(name, there ? c.state.at(name) : zeros(tensor.shape(), {format.dtype}));
    if (!there && format.half) c.half.insert(name);
  }
  c.exact = std::move(exact), c.state = std::move(state), c.plan = plan.result;
}

}  // namespace

std::string random_inputs_text(const training::ModelOptions& options) {
  const char* all = "logits of random inputs";
  if (options.row().input == training::Input::images || options.shown_context() == options.context()) return all;
  return text(all, ", the first ", options.shown_context(), " of ", options.context(), " positions,");
}

Deviation output_deviation(std::string what, double size, double control, NumberFormat format) {
  return {.what = std::move(what),
          .size = size,
          .bound = 4 * control + 64 * epsilon(DType::f64),
          .control = control,
          .format = format};
}

ModelPlan plan_conversion(const Metadata& description, const TensorMap& outline, Form to, bool inference) {
  const training::ModelOptions options(description);
  training::check_carried(options.transformer());
  options.check_size(outline);
  const nn::BranchOptions& branch = options.transformer().branch;
  check(branch.dropout == 0 || inference, "convert: dropout ", branch.dropout,
        " acts on the branches before they are recentred, which weights that are centred already cannot follow in "
        "training; for inference alone it can be left out");
  ModelPlan plan;
  {
    const std::unique_ptr<nn::Module> model = options.build();
    check_shapes(*model, outline);
    plan.source = streams::plan_of(*model);
  }
  const std::unique_ptr<nn::Module> converted = converted_options(options, plan.source, to).build();
  plan.description = training::describe(*converted);
  plan.result = streams::plan_of(*converted);
  for (const streams::NamedParameter& p : streams::named_parameters(*converted))
    plan.outline.add(p.name, isonorm::outline(p.tensor.shape(), DType::f64));
  return plan;
}

ModelConversion convert_model(const training::ModelFile& file, Form to, const ModelConversionOptions& o) {
  ModelPlan plan = plan_conversion(file.description, file.state, to, o.inference);
  ModelConversion result{convert(file.state, plan.source, to, o.dtype), std::move(plan.description)};
  complete(result.conversion, plan, o.dtype.value_or(coarsest(file.state)));
  return result;
}

Tensor logits(const Metadata& description, const TensorMap& state, const Tensor& inputs) {
  NoGrad no_grad;
  const std::unique_ptr<nn::Module> model = loaded(description, state);
  model->to(inputs.device());
  return (*model)(inputs);
}

Deviation compare_models(const Metadata& description_a, const LazyState& a, const Metadata& description_b,
                         const LazyState& b, const Tensor& inputs, std::string what) {
  NoGrad no_grad;
  int64_t numbers = kBlock, each = 0;  // logits that are kept; logits per row of inputs
  for (const auto& [name, tensor] : a.outline) numbers += tensor.numel();
  // The logits of the rows from `begin` on, in blocks.
  const auto outputs = [&](std::unique_ptr<nn::Module> model, int64_t begin) {
    model->to(inputs.device());
    model->prepare_inference();  // so that weights are mapped once
    if (each == 0) each = std::max(int64_t{1}, (*model)(narrow(inputs, 0, 0, 1)).numel());
    const int64_t end = std::min(inputs.size(0), begin + std::max(int64_t{1}, numbers / each));
    std::vector<Tensor> blocks;
    for (int64_t rows = 0; begin < end; begin += rows) {
      rows = std::min(std::max(int64_t{1}, kBlock / each), end - begin);
      blocks.push_back((*model)(narrow(inputs, 0, begin, rows)));
    }
    return blocks;
  };
  Distance distance;
  std::vector<Distance> controls(2 * kControls);
  for (int64_t done = 0; done < inputs.size(0);) {
    const std::vector<Tensor> expected = outputs(loaded(description_a, a), done);
    for (uint64_t i = 0; i < kControls; ++i)
      controls[2 * i].add(expected, outputs(moved(description_a, a, b, i + 1), done));
    const std::vector<Tensor> found = outputs(loaded(description_b, b), done);
    distance.add(expected, found);
    for (uint64_t i = 0; i < kControls; ++i)
      controls[2 * i + 1].add(found, outputs(moved(description_b, b, a, i + 1), done));
    for (const Tensor& block : expected) done += block.size(0);
  }
  double moved = 0;
  for (const Distance& control : controls) moved = larger(moved, control.relative());
  return output_deviation(std::move(what), distance.relative(), moved,
                          coarser(coarsest(a.outline, a.half), coarsest(b.outline, b.half)));
}

}  // namespace isonorm::equivalence
