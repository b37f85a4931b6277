#include "lab/probes/point_errors.h"

#include <cmath>

#include "equivalence/compare/own_training.h"
#include "equivalence/lockstep/made_examples.h"
#include "isonorm.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;
using streams::Role;
using streams::Stored;
using streams::Stream;

// How the raw weights are mapped: in the model's forward, or here, in f64 or in the model's dtype.
enum class Maps { by_the_stream, once, once_in_the_dtype };

// A model that is differentiated once; gradients are in f64 and raw coordinates.
class Point : public Training {
 public:
  Point(const training::TrainingOptions& o, Form form, Maps maps = Maps::by_the_stream)
      : maps_(maps),
        model_(build_model(o, {.form = form, .storage = maps == Maps::by_the_stream ? Stored::raw : Stored::mapped})),
        stream_(*streams::stream_of(*model_)) {
    parameters_ = streams::named_parameters(*model_);
  }

  const Tensor& logits() const { return logits_; }

  // Logits and gradients at the weights of `raw`, which are numbers of the dtype. reversed: coordinates and examples in
  // reverse order.
  void differentiate_at(const nn::Module& raw, const training::Examples& batch, bool reversed = false) {
    const std::vector<streams::NamedParameter> source = streams::named_parameters(raw);
    std::vector<Tensor> leaves;  // the raw weights that the stored ones were computed from, if maps are rounded
    for (size_t i = 0; i < source.size(); ++i) {
      const streams::NamedParameter &p = parameters_[i], &from = source[i];
      Tensor w = detach(from.tensor);
      if (reversed) w = mirrored(w, from);
      if (maps_ == Maps::once) w = stored_map(from, stream_)(w, from.stream_dim);
      w = w.to(p.tensor.dtype());
      if (maps_ == Maps::once_in_the_dtype)
        w = stored_map(from, stream_).in_its_dtype(require_grad(leaves.emplace_back(w)), from.stream_dim);
      {
        NoGrad no_grad;
        copy_into(p.tensor, detach(w));
      }
      mapped_.push_back(w);
    }
    differentiate(reversed ? batch.each([](const Tensor& x) { return flip(x, {0}); }) : batch);
    if (reversed) logits_ = flip(logits_, {0});
    for (size_t i = 0; i < source.size(); ++i) {
      Tensor g = parameters_[i].tensor.grad();
      if (maps_ == Maps::once_in_the_dtype && requires_grad(mapped_[i])) {
        backward(mapped_[i], g);
        g = leaves[i].grad();
      }
      g = g.to(DType::f64);
      if (maps_ == Maps::once) g = raw_gradient(g, parameters_[i], stream_);
      gradients_.push_back(reversed ? mirrored(g, source[i]) : g);
    }
  }

  void differentiate(const training::Examples& batch) override {
    const Tensor& x = batch.inputs;
    const DType dtype = parameters_[0].tensor.dtype();
    const Tensor y = (*model_)(is_floating(x.dtype()) ? x.to(dtype) : x),
                 loss = cross_entropy(y, batch.targets, {.reduction = Reduction::sum});
    backward(loss);
    logits_ = detach(y).to(DType::f64);
    loss_ = loss.item();
  }
  void update(double) override {}
  nn::Module& model() override { return *model_; }

 private:
  // The weight with the coordinates of the stream in reverse order.
  static Tensor mirrored(const Tensor& w, const streams::NamedParameter& p) {
    if (p.role != Role::neutral) return flip(w, {p.stream_dim});
    return p.name.find("norm") != std::string::npos ? flip(w, {0}) : w;
  }

  Maps maps_;
  std::unique_ptr<nn::Module> model_;
  Stream stream_;
  std::vector<Tensor> mapped_;
  Tensor logits_;
};

// The pairs that are compared. mine: a Point or a RoundingModel.
template <class Model> std::vector<Pair> pairs(const Model& mine, const Point& reference, Looked looked) {
  if (looked == Looked::gradients) return mine.gradient_pairs(reference);
  return {{"logits", mine.logits(), reference.logits(), largest_entry(reference.logits())}};
}

// <g, g_ref> / <g_ref, g_ref> - 1: a wrong factor shows in it, and independent errors of the entries mostly cancel. 0
// if the reference is rounding alone.
double scale_error(const Pair& p) {
  const NoGrad no_grad;
  const double squares = sum(square(p.reference)).item();
  const bool blind = largest_entry(p.reference) < p.scale;
  return blind || squares == 0 ? 0 : sum((p.value - p.reference) * p.reference).item() / squares;
}

// The predicted rounding errors in eps, of a tensor's entries and scales, without names.
FormErrors predicted(DrawnPoint& drawn, Form form, const Point& reference, Looked looked) {
  FormErrors errors;
  const auto square_in_eps = [&](double error) { return std::pow(error / epsilon(drawn.dtype()), 2) / kPredictions; };
  for (int n = 0; n < kPredictions; ++n) {
    const auto model = drawn.rounded_model(form);
    model->differentiate(drawn.batch());
    const std::vector<Pair> all = pairs(*model, reference, looked);
    errors.resize(all.size(), {.name = {}, .predicted = {0}, .scale_predicted = {0}});
    for (size_t i = 0; i < all.size(); ++i) {
      errors[i].predicted[0] += square_in_eps(deviation({all[i]}));
      errors[i].scale_predicted[0] += square_in_eps(scale_error(all[i]));
    }
  }
  for (TensorErrors& t : errors)
    for (auto* mean : {&t.predicted, &t.scale_predicted}) mean->front() = std::sqrt(mean->front());
  return errors;
}

// Combines the predictions, for a reference that rounds as much as the compared model.
FormErrors with_those_of(FormErrors errors, const FormErrors& reference) {
  for (size_t i = 0; i < errors.size(); ++i) {
    errors[i].predicted[0] = std::hypot(errors[i].predicted[0], reference[i].predicted[0]);
    errors[i].scale_predicted[0] = std::hypot(errors[i].scale_predicted[0], reference[i].scale_predicted[0]);
  }
  return errors;
}

// Appends the errors of a point.
void append(FormErrors& to, const std::vector<Pair>& pairs, const FormErrors& expected, DType dtype) {
  to.resize(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Pair& p = pairs[i];
    TensorErrors& t = to[i];
    t.name = p.first_row == 0 ? p.name : text(p.name, "[", p.first_row, "..]");
    t.error.push_back(deviation({p}) / epsilon(dtype));
    t.scale.push_back(scale_error(p) / epsilon(dtype));
    t.predicted.push_back(expected[i].predicted[0]);
    t.scale_predicted.push_back(expected[i].scale_predicted[0]);
  }
}

// Measures gradients in f32 whose activations are kept in bf16, with a batch large enough for that (4 KiB and more).
void measure_kept(PointErrors& errors, const DrawnPoint& drawn, const training::TrainingOptions& o, int k) {
  constexpr int kExamples = 64;
  training::TrainingOptions many = o;
  many.batch = kExamples;
  const training::Examples batch = made_examples(many, static_cast<uint64_t>(k));
  Point reference(drawn.exact(), Form::layer_norm);
  reference.differentiate_at(drawn.raw(), batch);
  const SaveActivations in_bf16(DType::bf16);
  const auto measure = [&](Form form, Maps maps) {
    Point point(o, form, maps);
    point.differentiate_at(drawn.raw(), batch, row_of(form).raw());
    return point.gradient_deviation(reference) / epsilon(DType::bf16);
  };
  for (size_t f = 0; f < kPointFormCount; ++f) errors.kept[f].push_back(measure(kPointForms[f], Maps::by_the_stream));
  if (errors.has_plain()) errors.kept_plain.push_back(measure(Form::rms_norm, Maps::once));
}

constexpr int kMostDraws = 1000, kExamples = 2;
constexpr double kFromTheKink = 4;  // standard deviations: at this distance one unit in 16,000 flips

Tensor rounded(const Tensor& x, DType dtype) { return x.to(dtype).to(DType::f64); }

}  // namespace

DrawnPoint::DrawnPoint(const Architecture& a, DType dtype, uint64_t seed)
    : exact_(training_options(a, DType::f64, seed)),
      dtype_(dtype),
      weights_{seed, uint64_t{1} << 61},
      errors_{seed, uint64_t{1} << 60} {
  exact_.batch = kExamples;
}

int DrawnPoint::next() {
  for (int vain = 0; vain < kMostDraws; ++vain) {
    draw();
    if (!at_a_kink()) return vain;
  }
  check(false, "certificate: at ", kMostDraws, " points in ", dtype_, " a kink was within rounding");
  return 0;
}

std::unique_ptr<RoundingModel> DrawnPoint::rounded_model(Form form) {
  errors_.offset += uint64_t{1} << 24;
  return std::make_unique<RoundingModel>(exact_, form, *raw_, Rounding(dtype_, errors_));
}

void DrawnPoint::draw() {
  const NoGrad no_grad;
  raw_ = initial_model(exact_);
  draw_parameters(raw_->parameters(), weights_);
  for (const Tensor& p : raw_->parameters()) copy_into(p, rounded(detach(p), dtype_));
  batch_ = made_examples(exact_, drawn_++);
  if (is_floating(batch_.inputs.dtype())) batch_.inputs = rounded(batch_.inputs, dtype_);
}

bool DrawnPoint::at_a_kink() {
  if (exact_.model.transformer().activation != nn::Activation::relu && exact_.model.transformer().width != 2)
    return false;
  const NoGrad no_grad;
  RoundingModel truth(exact_, Form::layer_norm, *raw_, Rounding());
  truth.forward(batch_.inputs);
  for (Form form : streams::layer_norm_forms()) {
    const auto model = rounded_model(form);
    model->forward(batch_.inputs);
    for (size_t i = 0; i < truth.kinks().size(); ++i) {
      const Tensor& z = truth.kinks()[i];
      const double error = norm(model->kinks()[i] - z).item() / std::sqrt(static_cast<double>(z.numel()));
      if (!(amin(abs(z)).item() > kFromTheKink * error)) return true;
    }
  }
  return false;
}

PointErrors point_errors(const Architecture& a, DType dtype, Looked looked, int points, uint64_t seed,
                         const Continue& go_on) {
  PointErrors errors{.architecture = a, .dtype = dtype, .looked = looked};
  const training::TrainingOptions o = training_options(a, dtype, seed);
  DrawnPoint drawn(a, dtype, seed);
  for (int k = 0; k < points; ++k) {
    errors.redrawn += drawn.next();
    Point reference(drawn.exact(), Form::layer_norm);
    reference.differentiate_at(drawn.raw(), drawn.batch());
    const FormErrors of_reference = predicted(drawn, Form::layer_norm, reference, looked);
    const auto expected = [&](const FormErrors& e) { return dtype == DType::f64 ? with_those_of(e, of_reference) : e; };
    const auto measure = [&](Form form, Maps maps) {
      Point point(o, form, maps);
      point.differentiate_at(drawn.raw(), drawn.batch(), row_of(form).raw());
      return pairs(point, reference, looked);
    };
    if (dtype == DType::f32 && looked == Looked::gradients) measure_kept(errors, drawn, o, k);
    for (size_t f = 0; f < kPointFormCount; ++f) {
      const Form form = kPointForms[f];
      const bool own = f == 0;
      const FormErrors mine = expected(own ? of_reference : predicted(drawn, form, reference, looked));
      append(errors.forms[f], measure(form, Maps::by_the_stream), mine, dtype);
      if (row_of(form).zero_mean_writers() && errors.has_plain())
        append(errors.plain, measure(form, Maps::once), mine, dtype);
      if (dtype == DType::bf16 && !a.affine && !own)
        errors.rounded[f].push_back(deviation(measure(form, Maps::once_in_the_dtype)) / epsilon(dtype));
    }
    if (go_on && !go_on()) break;
  }
  return errors;
}

}  // namespace isonorm::equivalence
