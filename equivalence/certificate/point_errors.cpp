#include "equivalence/certificate/point_errors.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/shape.h"
#include "equivalence/made_examples.h"
#include "equivalence/own_training.h"
#include "equivalence/parametrisation.h"
#include "equivalence/stream_check.h"

namespace isonorm::equivalence {
namespace {

using nn::Role;
using nn::Stream;
using nn::StreamForm;
using nn::StreamStorage;

Tensor rounded(const Tensor& x, DType dtype) { return cast(cast(x, dtype), DType::f64); }

// A map of nn/coordinates.h in the dtype of w, whatever that costs: what Stream does in f32.
Tensor mapped_in_its_dtype(const Tensor& w, const nn::Parameter& p, const Stream& stream) {
  if (p.role == Role::neutral) return w;
  const bool writer = p.role == Role::writer;
  switch (stream.form()) {
    case StreamForm::rms_norm:
      return writer ? nn::recentre(w, p.stream_dim) : w;
    case StreamForm::crms_norm:
      return writer ? nn::compress_writer(w, p.stream_dim) : nn::compress_reader(w, p.stream_dim);
    default:
      return nn::to_isometric(w, p.stream_dim);
  }
}

// Who maps the raw weights: the model in its forward, or this file, in f64 or in the model's dtype.
enum class Maps { by_the_stream, once, once_in_the_dtype };

// A model that is looked at once, in f64 and raw coordinates.
class Point : public Training {
 public:
  Point(const ProofOptions& o, const ModelShape& shape, StreamForm form, Maps maps = Maps::by_the_stream)
      : stream_(form, o.width, maps == Maps::by_the_stream ? StreamStorage::raw : StreamStorage::mapped),
        maps_(maps),
        model_(build_model(o, shape, stream_)) {
    parameters_ = model_->named_parameters();
  }

  const Tensor& logits() const { return logits_; }

  // Logits and gradients at the weights of `raw`, which are numbers of the dtype. `reversed`: with coordinates and
  // examples in reverse order.
  void differentiate_at(const nn::Module& raw, const Examples& batch, bool reversed = false) {
    const std::vector<nn::Parameter> source = raw.named_parameters();
    std::vector<Tensor> leaves;  // raw weights that the stored ones were computed from, where maps are rounded
    for (size_t i = 0; i < source.size(); ++i) {
      const nn::Parameter &p = parameters_[i], &from = source[i];
      Tensor w = detach(from.tensor);
      if (reversed) w = mirrored(w, from);
      if (maps_ == Maps::once) w = stored_map(from, stream_)(w, from.stream_dim);
      w = cast(w, p.tensor.dtype());
      if (maps_ == Maps::once_in_the_dtype)
        w = mapped_in_its_dtype(require_grad(leaves.emplace_back(w)), from, stream_);
      {
        NoGrad no_grad;
        copy_into(p.tensor, detach(w));
      }
      mapped_.push_back(w);
    }
    differentiate(reversed ? Examples{flip(batch.inputs, {0}), flip(batch.targets, {0})} : batch);
    if (reversed) logits_ = flip(logits_, {0});
    for (size_t i = 0; i < source.size(); ++i) {
      Tensor g = gradient(parameters_[i].tensor);
      if (maps_ == Maps::once_in_the_dtype && requires_grad(mapped_[i])) {
        backward(mapped_[i], g);
        g = gradient(leaves[i]);
      }
      g = cast(g, DType::f64);
      if (maps_ == Maps::once) g = raw_gradient(g, parameters_[i], stream_);
      gradients_.push_back(reversed ? mirrored(g, source[i]) : g);
    }
  }

  void differentiate(const Examples& batch) override {
    const Tensor& x = batch.inputs;
    const DType dtype = parameters_[0].tensor.dtype();
    const Tensor y = (*model_)(is_floating(x.dtype()) ? cast(x, dtype) : x), loss = cross_entropy(y, batch.targets);
    backward(loss);
    logits_ = cast(detach(y), DType::f64);
    loss_ = loss.item();
  }
  void update(double) override {}
  nn::Module& model() override { return *model_; }

 private:
  // With the coordinates of the stream in reverse order.
  static Tensor mirrored(const Tensor& w, const nn::Parameter& p) {
    if (p.role != Role::neutral) return flip(w, {p.stream_dim});
    return p.name.find("norm") != std::string::npos ? flip(w, {0}) : w;
  }

  Stream stream_;
  Maps maps_;
  std::unique_ptr<nn::Module> model_;
  std::vector<Tensor> mapped_;
  Tensor logits_;
};

double error(const Point& point, const Point& reference, Looked looked) {
  if (looked == Looked::gradients) return point.gradient_deviation(reference);
  return largest_entry(point.logits() - reference.logits()) / largest_entry(reference.logits());
}

}  // namespace

PointErrors point_errors(const Architecture& a, DType dtype, Looked looked, int points, uint64_t seed,
                         const Continue& go_on) {
  PointErrors errors{.architecture = a, .dtype = dtype};
  const ProofOptions exact = training_options(a, DType::f64, seed), o = training_options(a, dtype, seed);
  const ModelShape shape = shape_of(a);
  Generator generator{seed, uint64_t{1} << 61};
  for (int k = 0; k < points; ++k) {
    const auto raw = initial_model(exact, shape);
    draw_parameters(*raw, generator);
    {
      NoGrad no_grad;
      for (const Tensor& p : raw->parameters()) copy_into(p, rounded(detach(p), dtype));
    }
    Examples batch = made_examples(exact, shape, static_cast<uint64_t>(k));
    if (is_floating(batch.inputs.dtype())) batch.inputs = rounded(batch.inputs, dtype);
    Point reference(exact, shape, StreamForm::layer_norm);
    reference.differentiate_at(*raw, batch);
    const auto measure = [&](std::vector<double>& to, StreamForm form, Maps maps, bool reversed = false) {
      Point point(o, shape, form, maps);
      point.differentiate_at(*raw, batch, reversed);
      to.push_back(error(point, reference, looked) / epsilon(dtype));
    };
    measure(errors.own, StreamForm::layer_norm, Maps::by_the_stream, true);
    if (looked == Looked::logits) {
      const auto moved = initial_model(exact, shape);
      moved->load_state_dict(moved_by_rounding(raw->state_dict(), dtype, static_cast<uint64_t>(k)));
      Point control(exact, shape, StreamForm::layer_norm);
      control.differentiate_at(*moved, batch);
      errors.own.back() = larger(errors.own.back(), error(control, reference, looked) / epsilon(dtype));
    }
    if (!exact.tied || !a.affine) measure(errors.plain, StreamForm::rms_norm, Maps::once);
    for (size_t f = 0; f < std::size(kCertifiedForms); ++f) {
      measure(errors.forms[f], kCertifiedForms[f], Maps::by_the_stream);
      if (dtype == DType::bf16 && !a.affine) measure(errors.rounded[f], kCertifiedForms[f], Maps::once_in_the_dtype);
    }
    if (go_on && !go_on()) break;
  }
  return errors;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += std::log(v);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace isonorm::equivalence
