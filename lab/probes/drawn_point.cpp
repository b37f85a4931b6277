#include "lab/probes/drawn_point.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "equivalence/compare/own_training.h"
#include "equivalence/lockstep/made_examples.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;

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

}  // namespace isonorm::equivalence
