// E2, E8 and E9: growth of the stream from block to block at the initial weights, and how much each block changes it.
#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/nets/deep_net.h"

namespace isonorm::papers {
namespace {

constexpr int kSeeds = 16;
constexpr int64_t kDepth = 32;
const std::vector<double> kBlocks = {1, 2, 4, 8, 16, 32};

// f(stream after block b, stream after block b - 1) for each b in kBlocks, mean over the seeds.
template <class F> std::vector<double> behind_blocks(const ExperimentOptions& o, const NetKind& kind, F&& f) {
  const NoGrad no_grad;
  std::vector<double> values(kBlocks.size());
  for (int i = 0; i < kSeeds; ++i) {
    const uint64_t seed = o.seed * 100 + static_cast<uint64_t>(i);
    DeepNet net(kind.connection, kDepth, seed, kind.norm);
    const std::vector<Tensor> streams = net.streams(NetBatch(seed).rows);
    for (size_t b = 0; b < kBlocks.size(); ++b) {
      const auto at = static_cast<size_t>(kBlocks[b]);
      values[b] += f(streams[at], streams[at - 1]) / kSeeds;
    }
  }
  return values;
}

double mean_square(const Tensor& x, const Tensor&) { return mean(square(x)).item(); }
double change_of_norm(const Tensor& x, const Tensor& before) {
  return mean(sqrt(mean(square(layer_norm(x, {}, {}) - layer_norm(before, {}, {})), {-1}))).item();
}

std::string fixed(double x) { return printed("%.2f", x); }

}  // namespace

ExperimentResult stream_growth(const ExperimentOptions& o) {
  const NetKind kinds[] = {{"post_ln", "other", nn::kPostLn},
                           {"pre_ln", "rms", nn::kPreLn},
                           {"layer_norm_scaling", "isometric", nn::kLayerNormScaling},
                           {"sandwich", "crms", nn::kSandwich}};
  ExperimentResult r;
  std::vector<Curve> curves;
  for (const NetKind& kind : kinds) {
    o.tell(kind.name);
    curves.push_back({kind.name, kind.css, behind_blocks(o, kind, mean_square)});
  }
  const auto &post = curves[0].values, &pre = curves[1].values, &scaled = curves[2].values;
  constexpr double kNoise = 0.15;  // of a mean over 16 x 32 rows of 64 numbers; one draw of the weights per seed
  bool within = true;
  for (size_t b = 0; b < kBlocks.size(); ++b)
    within = within && pre[b] > (1 + kBlocks[b] / 2) * (1 - kNoise) && pre[b] < (1 + 1.5 * kBlocks[b]) * (1 + kNoise);
  double post_off = 0;
  for (double v : post) post_off = std::max(post_off, std::abs(v - 1));
  // The ratio of the gains of two doublings: 2 if the stream grows in proportion to the block's number, 1 if it grows
  // like its logarithm.
  const auto gains = [](const std::vector<double>& v) { return (v[5] - v[4]) / (v[4] - v[3]); };
  r.confirmed = within && post_off < 1e-4 && gains(pre) > 1.6 && gains(scaled) < 1.4;
  r.measured = text("After block 32 the stream has a mean square of ", fixed(pre[5]), " in Pre-LN, between ",
                    1 + 32 / 2, " and ", 1 + 3 * 32 / 2, ", ", fixed(scaled[5]), " in LayerNorm Scaling and ",
                    fixed(post[5]), " in Post-LN. From 16 to 32 blocks Pre-LN gains ", fixed(gains(pre)),
                    " times its gain from 8 to 16, ", "LayerNorm Scaling ", fixed(gains(scaled)), " times.");
  r.refuted =
      text("a mean square of Pre-LN outside 1 + l/2 to 1 + 3l/2 by more than a share of ", kNoise,
           ", a mean square of Post-LN other than 1, or a gain of Pre-LN below 1.6 or of LayerNorm Scaling above 1.4");
  const char* caption =
      "Mean square of the stream after a block, at the initial weights of 32 blocks, mean over 16 seeds.";
  r.tables = {curve_table("The stream by block", caption, "block", kBlocks, curves)};
  r.figures = {curve_figure("block", "The stream by block", caption, "block", kBlocks, curves)};
  return r;
}

ExperimentResult collapse(const ExperimentOptions& o) {
  const NetKind kinds[] = {{"post_ln", "other", nn::kPostLn},
                           {"pre_ln", "rms", nn::kPreLn},
                           {"layer_norm_scaling", "isometric", nn::kLayerNormScaling}};
  ExperimentResult r;
  std::vector<Curve> curves;
  for (const NetKind& kind : kinds) {
    o.tell(kind.name);
    curves.push_back({kind.name, kind.css, behind_blocks(o, kind, change_of_norm)});
  }
  const double slope = log_slope(kBlocks, curves[1].values, 2);
  const double least = *std::min_element(curves[0].values.begin(), curves[0].values.end());
  r.confirmed = slope < -0.35 && slope > -0.75 && least > 0.5;
  r.measured =
      text("From block 4 to 32 of Pre-LN, the normalised stream changes by the block's number to the power of ",
           fixed(slope), "; in Post-LN every block changes it by ", fixed(least), " at least.");
  r.refuted = "a power of Pre-LN outside of -0.75 to -0.35, or a block of Post-LN that changes it by less than 0.5";
  const char* caption =
      "|LN(x_l) - LN(x_(l-1))| / sqrt(d) of a row, where x_l is the stream after block l, at the initial weights of 32 "
      "blocks, mean over rows and 16 seeds.";
  r.tables = {curve_table("Change by one block", caption, "block", kBlocks, curves)};
  r.figures = {curve_figure("block", "Change by one block", caption, "block", kBlocks, curves)};
  return r;
}

}  // namespace isonorm::papers
