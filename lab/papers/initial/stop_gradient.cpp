// E10: the effect of GPAS's stop-gradient, compared with the same scaling without it.
#include <cmath>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/nets/deep_net.h"
#include "streams/parametrize.h"

namespace isonorm::papers {
namespace {

constexpr double kFactor = 0.05;  // silu(gate)
constexpr int64_t kDepth = 32;

// The gate for which silu(gate) = kFactor, by Newton's method.
double gate() {
  double a = kFactor;
  for (int i = 0; i < 30; ++i) {
    const double s = 1 / (1 + std::exp(-a));
    a -= (a * s - kFactor) / (s * (1 + a * (1 - s)));
  }
  return a;
}

// x <- (1 - kFactor) (x + F(norm(x))), differentiated without a stop-gradient.
class Scaled : public nn::PreNorm {
 public:
  using PreNorm::PreNorm;
  void join(nn::Residual& r, const Tensor& branch) override {
    PreNorm::join(r, branch);
    r.sum = r.settle() * (1 - kFactor);
  }
};
const nn::Arrangement kScaled{.name = "scaled", .block = nn::block_of<Scaled>, .last = nn::last_of<nn::PreNorm>};

struct Seen {
  double stream, first, logits;  // mean square after the last block, first block's gradient norm, sum of squared logits
};

Seen look(const nn::Arrangement& connection, uint64_t seed) {
  DeepNet net(connection, kDepth, seed);
  for (const streams::NamedParameter& p : streams::named_parameters(net))
    if (p.name.ends_with("gate")) fill(detach(p.tensor), gate());
  const NetBatch batch(seed);
  net.loss_and_gradients(batch);
  const NoGrad no_grad;
  return {mean(square(net.streams(batch.rows).back())).item(), net.gradient_norm(0),
          sum(square(net(batch.rows))).item()};
}

}  // namespace

ExperimentResult stop_gradient(const ExperimentOptions& o) {
  ExperimentResult r;
  o.tell("three networks");
  const uint64_t seed = o.seed * 100;
  const Seen plain = look(nn::kPreLn, seed), with = look(nn::kPreGpas, seed), without = look(kScaled, seed);
  const double predicted = std::pow(1 - kFactor, -(2.0 * kDepth - 1)), ratio = with.first / without.first;
  const double same = std::abs(with.logits / without.logits - 1), off = std::abs(ratio / predicted - 1);
  constexpr double kRounding = 1e-9;  // of a product of 63 factors and a gradient through 64 sub-layers, f64
  r.confirmed = same < kRounding && off < kRounding && with.stream < 0.5 * plain.stream;
  r.measured = text("Scaling the stream by ", 1 - kFactor, " after every sub-layer of ", kDepth,
                    " blocks takes its mean square from ", printed("%.1f", plain.stream), " to ",
                    printed("%.2f", with.stream), ". With the stop-gradient the first block's gradient is ",
                    printed("%.4f", ratio), " times the gradient without it; ", 1 - kFactor, "^-", 2 * kDepth - 1,
                    " is ", printed("%.4f", predicted), ". The logits are the same to ", scientific(same), ".");
  r.refuted = text("logits that differ, or a ratio that differs from the prediction, by more than ",
                   scientific(kRounding), ", or a stream that keeps half of its mean square");
  reports::TextTable table{
      .heading = "Scaled streams, with and without a stop-gradient",
      .columns = {"", "mean square of the stream", "gradient of the first block", "logits, squared"},
      .caption = "After the last of 32 blocks; gradient of the first MLP's second weight; at the initial weights."};
  for (const auto& [name, seen] :
       {std::pair{"pre_ln", plain}, {"pre_gpas, silu(gate) = 0.05", with}, {"the same without stop-gradient", without}})
    table.rows.push_back({{name},
                          reports::printed_cell("%.3f", seen.stream),
                          reports::printed_cell("%.3f", seen.first),
                          reports::printed_cell("%.3f", seen.logits)});
  r.tables = {table};
  const std::vector<double> at = {1, 2};
  r.figures = {curve_figure("gradient", "The first block's gradient: with the stop-gradient (1) and without (2)",
                            "Both gradients of the same network, with the prediction.", "network", at,
                            {{"measured", "other", {with.first, without.first}},
                             {"predicted from the second", "rms", {without.first * predicted, without.first}}})};
  return r;
}

}  // namespace isonorm::papers
