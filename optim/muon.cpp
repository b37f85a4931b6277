#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/kernels/optimizer.h"

namespace isonorm::optim {
namespace {

double scale_of(MuonScale scale, const Tensor& matrix) {
  const double rows = static_cast<double>(matrix.size(0)), columns = static_cast<double>(matrix.size(1));
  switch (scale) {
    case MuonScale::original:
      return std::sqrt(std::max(1.0, rows / columns));
    case MuonScale::match_rms_adamw:
      return 0.2 * std::sqrt(std::max(rows, columns));
    case MuonScale::spectral_unclamped:
      return std::sqrt(rows / columns);
    case MuonScale::none:
      break;
  }
  return 1;
}

}  // namespace

Tensor newton_schulz(const Tensor& x, const MuonOptions& o) {
  NoGrad no_grad;
  check(x.rank() == 2, "newton_schulz: shape is ", x.shape(), ", expected a matrix");
  const bool tall = x.size(0) > x.size(1);
  Tensor y = (tall ? transpose(x, 0, 1) : x) / clamp(norm(x), o.eps, HUGE_VAL);
  for (int i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = matmul(y, transpose(y, 0, 1));
    y = y * o.a + matmul(gram * o.b + matmul(gram, gram) * o.c, y);
  }
  return contiguous(tall ? transpose(y, 0, 1) : y);
}

Muon::Muon(const std::vector<Tensor>& matrices, MuonOptions options)
    : Muon(std::vector<ParameterGroup<MuonOptions>>{{matrices, options}}) {}

Muon::Muon(const std::vector<ParameterGroup<MuonOptions>>& matrices,
           const std::vector<ParameterGroup<AdamWOptions>>& rest)
    : ElementwiseOptimizer("muon", count(matrices) + count(rest)) {
  for (const auto& [parameters, o] : matrices) {
    for (size_t i = 0; i < parameters.size(); ++i)
      check(!parameters[i].defined() || parameters[i].rank() == 2, "muon: parameter ", i, " has shape ",
            parameters[i].defined() ? parameters[i].shape() : Dims(),
            ", expected a matrix; give it to the AdamW groups");
    add_group(parameters, o.lr,
              {.conditions = {fraction("momentum", o.momentum),
                              not_negative("weight_decay", o.weight_decay),
                              {o.ns_steps >= 1 && o.ns_steps < 100, "ns_steps", static_cast<double>(o.ns_steps),
                               "a number from 1 to 99"},
                              {o.eps > 0 && std::isfinite(o.eps), "eps", o.eps, "a finite number above 0"}},
               .state = {"momentum_buffer"}});
    options_.push_back(o);
  }
  for (const auto& [parameters, o] : rest) add_group(parameters, o.lr, AdamW::group_of(o)), rest_.push_back(o);
}

Muon::Step Muon::step_of(int group, int64_t t) const {
  const int matrices = static_cast<int>(options_.size());
  if (group >= matrices) return AdamW::step_with(rest_[group - matrices], lr(group), t);
  const MuonOptions& o = options_[group];
  return {.rule = rules::Average{.rest = 1 - o.momentum}, .keep = 1 - lr(group) * o.weight_decay};
}

Muon::Tunable Muon::tunable(int group) {
  const int matrices = static_cast<int>(options_.size());
  if (group >= matrices) return {&rest_[group - matrices].weight_decay};
  return {&options_[group].weight_decay, &options_[group].momentum};
}

void Muon::prepare(std::vector<kernels::Update>& updates, const std::vector<const Entry*>& stepped) {
  NoGrad no_grad;
  std::vector<kernels::Update> averages;
  const auto is_matrix = [&](size_t i) { return stepped[i]->group < static_cast<int>(options_.size()); };
  for (size_t i = 0; i < updates.size(); ++i)
    if (is_matrix(i)) averages.push_back(updates[i]);
  run(averages);
  for (size_t i = 0; i < updates.size(); ++i) {
    kernels::Update& u = updates[i];
    if (!is_matrix(i) || u.gradient.numel() == 0) continue;
    const int group = stepped[i]->group;
    const MuonOptions& o = options_[group];
    Tensor direction = u.state[0];
    if (o.nesterov) {
      const Tensor g = scaled_gradient(u, direction.dtype());
      direction = g + (direction - g) * o.momentum;
    }
    u.state[0] = newton_schulz(direction, o);
    u.rule = rules::Along{lr(group) * scale_of(o.scale, u.parameter)};
  }
}

}  // namespace isonorm::optim
