// E1, E3, E7 and E17: size of the gradients at the initial weights: in the last block, in the first, in all blocks. E5
// and E6: how far one step of SGD moves the network's output, by depth.
#include <algorithm>
#include <cmath>
#include <functional>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/nets/deep_net.h"
#include "streams/parametrize.h"

namespace isonorm::papers {
namespace {

constexpr int kSeeds = 8;
const std::vector<double> kDepths = {2, 4, 8, 16, 32, 64};
constexpr size_t kFrom = 2;  // index of the first depth that counts for the slope

std::string fixed(double x) { return printed("%.2f", x); }

std::string net_of(int64_t width) {
  return text("Norm of the gradient of an MLP's second weight at the initial weights, geometric mean over ", kSeeds,
              " seeds: width ", width, ", ReLU, one head, queries and keys 0, 32 rows with labels drawn from ", width,
              ".");
}

constexpr int64_t kProfileDepths[] = {12, 16, 24};
constexpr size_t kShown = 1;  // index of the depth whose profile is shown

// Norm of each block's gradient, geometric mean over the seeds (single Post-LN networks deviate far from the others).
std::vector<double> profile_of(const ExperimentOptions& o, const NetKind& kind, int64_t depth, int64_t width) {
  o.tell(text(kind.name, ", depth ", depth));
  std::vector<double> norms(static_cast<size_t>(depth));
  for (int i = 0; i < kSeeds; ++i) {
    o.go_on();
    const uint64_t seed = o.seed * 100 + static_cast<uint64_t>(i);
    DeepNet net(kind.connection, depth, seed, kind.norm, width);
    net.loss_and_gradients(NetBatch(seed, width));
    for (int64_t b = 0; b < depth; ++b) norms[static_cast<size_t>(b)] += std::log(net.gradient_norm(b)) / kSeeds;
  }
  for (double& v : norms) v = std::exp(v);
  return norms;
}

// A curve over kDepths for each kind, with the value that `of` computes from the profile.
template <class F> std::vector<Curve> by_depth(const ExperimentOptions& o, std::span<const NetKind> kinds, F&& of) {
  std::vector<Curve> curves;
  for (const NetKind& kind : kinds) {
    curves.push_back({kind.name, kind.css, {}});
    for (double depth : kDepths)
      curves.back().values.push_back(of(profile_of(o, kind, static_cast<int64_t>(depth), kNetWidth)));
  }
  return curves;
}

// Standard deviation divided by the mean.
double deviation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (double v : values) mean += v / n;
  for (double v : values) squares += (v - mean) * (v - mean) / n;
  return std::sqrt(squares) / mean;
}

constexpr int kUpdateSeeds = 4;

struct Scale {
  int64_t width;
  double rate;
};

// |F(after) - F(before)| / learning rate for each row, mean over the rows.
double moved(const NetKind& kind, int64_t depth, uint64_t seed, const Scale& s) {
  DeepNet net(kind.connection, depth, seed, kind.norm, s.width);
  const NetBatch batch(seed, s.width);
  net.loss_and_gradients(batch);
  const NoGrad no_grad;
  const Tensor before = net(batch.rows);
  for (const streams::NamedParameter& p : streams::named_parameters(net))
    if (p.name.starts_with("blocks.")) copy_into(p.tensor, p.tensor - s.rate * p.tensor.grad());
  return mean(sqrt(sum(square(net(batch.rows) - before), {-1}))).item() / s.rate;
}

}  // namespace

ExperimentResult last_gradient(const ExperimentOptions& o) {
  const NetKind kinds[] = {{"post_ln", "other", nn::kPostLn},
                           {"pre_ln", "rms", nn::kPreLn},
                           {"pre_ln, uncentred_rms_norm", "crms", nn::kPreLn, NormKind::rms}};
  constexpr double kFlat = 0.2, kRoot = 0.12;
  ExperimentResult r;
  const auto curves = by_depth(o, kinds, [](const std::vector<double>& norms) { return norms.back(); });
  std::vector<double> slopes;
  for (const Curve& c : curves) slopes.push_back(log_slope(kDepths, c.values, kFrom));
  r.confirmed = std::abs(slopes[0]) < kFlat && std::abs(slopes[1] + 0.5) < kRoot && std::abs(slopes[2] + 0.5) < kRoot;
  r.measured =
      text("From 8 to 64 blocks the gradient of the last block grows like depth to the power of ", fixed(slopes[0]),
           " in Post-LN, ", fixed(slopes[1]), " in Pre-LN and ", fixed(slopes[2]), " with RMSNorm in Pre-LN's place.");
  r.refuted = "a power of Post-LN beyond 0.2 either way, or another power further than 0.12 from -0.5";
  r.tables = {curve_table("The last block's gradient by depth", net_of(kNetWidth), "depth", kDepths, curves)};
  r.figures = {
      curve_figure("depth", "The last block's gradient by depth", net_of(kNetWidth), "blocks", kDepths, curves)};
  return r;
}

ExperimentResult first_gradient(const ExperimentOptions& o) {
  const NetKind kinds[] = {{"post_ln", "other", nn::kPostLn},
                           {"deepnorm", "isometric", nn::kDeepNorm},
                           {"pre_ln", "rms", nn::kPreLn},
                           {"residual", "crms", nn::kResiDual}};
  ExperimentResult r;
  const auto curves = by_depth(o, kinds, [](const std::vector<double>& norms) { return norms.front(); });
  double above = INFINITY;
  for (size_t i = 0; i < kDepths.size(); ++i) above = std::min(above, curves[3].values[i] / curves[2].values[i]);
  const double post = log_slope(kDepths, curves[0].values, 0), deep = log_slope(kDepths, curves[1].values, 0);
  r.confirmed = above > 1 && std::abs(deep + 0.5) < 0.12;
  r.measured =
      text("From 2 to 64 blocks ResiDual's gradient is ", fixed(above),
           " times Pre-LN's at least; DeepNorm's changes like depth to the power of ", fixed(deep),
           ". That Post-LN's vanishes with depth is ",
           post < -0.2 ? "seen" : "not seen at this size and without training", ": its power is ", fixed(post), ".");
  r.refuted = "a gradient of ResiDual below Pre-LN's, or a power of DeepNorm further than 0.12 from -0.5";
  r.tables = {curve_table("The first block's gradient by depth", net_of(kNetWidth), "depth", kDepths, curves)};
  r.figures = {
      curve_figure("depth", "The first block's gradient by depth", net_of(kNetWidth), "blocks", kDepths, curves)};
  return r;
}

ExperimentResult gradient_profile(const ExperimentOptions& o) {
  const NetKind kinds[] = {{"post_ln", "other", nn::kPostLn},
                           {"pre_ln", "rms", nn::kPreLn},
                           {"deepnorm", "isometric", nn::kDeepNorm},
                           {"sub_ln", "crms", nn::kSubLn},
                           {"residual", "plain", nn::kResiDual},
                           {"mix_ln", "negative", nn::kMixLn},
                           {"layer_norm_scaling", "nested rms", nn::kLayerNormScaling}};
  const int64_t width = o.full ? 512 : kNetWidth;
  ExperimentResult r;
  std::vector<double> blocks;
  for (int64_t i = 1; i <= kProfileDepths[kShown]; ++i) blocks.push_back(static_cast<double>(i));
  const std::vector<double> depths(std::begin(kProfileDepths), std::end(kProfileDepths));
  std::vector<Curve> curves, spreads;
  for (const NetKind& kind : kinds) {
    spreads.push_back({kind.name, kind.css, {}});
    for (size_t i = 0; i < std::size(kProfileDepths); ++i) {
      const std::vector<double> profile = profile_of(o, kind, kProfileDepths[i], width);
      spreads.back().values.push_back(deviation(profile));
      if (i == kShown) curves.push_back({kind.name, kind.css, profile});
    }
  }
  const auto rise = [&](size_t i) { return curves[i].values.back() / curves[i].values.front(); };
  const auto spread = [&](size_t i) { return spreads[i].values[kShown]; };
  // True if the gradients of kind i vary less over the blocks than Pre-LN's, at every depth.
  const auto evener = [&](size_t i) {
    return std::equal(spreads[i].values.begin(), spreads[i].values.end(), spreads[1].values.begin(), std::less<>());
  };
  r.confirmed = rise(1) < 0.5 && rise(2) > 0.8 && rise(2) < 1.25 && spread(2) < 0.1;
  r.measured = text(
      "With ", kProfileDepths[kShown], " blocks the gradient of the last block is ", fixed(rise(1)),
      " times the first block's in Pre-LN and ", fixed(rise(2)), " in DeepNorm, whose gradients deviate by ",
      printed("%.3f", spread(2)), " of their mean, Pre-LN's by ", fixed(spread(1)), ". That they rise in Post-LN is ",
      rise(0) > 1.4 ? "seen" : text("not seen with width ", width), " (", fixed(rise(0)), "); that Mix-LN's (",
      fixed(spread(5)), ") and LayerNorm Scaling's (", fixed(spread(6)),
      ") deviate less than Pre-LN's, with 12, 16 and 24 blocks, is ", evener(5) && evener(6) ? "seen." : "not seen.");
  r.refuted = "gradients of Pre-LN that do not fall to a half, or of DeepNorm that deviate by a tenth";
  r.tables = {
      curve_table("Gradients by block", net_of(width), "block", blocks, curves),
      curve_table("How gradients of blocks deviate, divided by their mean", net_of(width), "depth", depths, spreads)};
  r.figures = {curve_figure("block", "Gradients by block", net_of(width), "block", blocks, curves)};
  return r;
}

// One step of SGD on all blocks.
ExperimentResult bounded_update(const ExperimentOptions& o) {
  const NetKind kinds[] = {{"post_ln", "other", nn::kPostLn},
                           {"deepnorm", "isometric", nn::kDeepNorm},
                           {"pre_ln", "rms", nn::kPreLn},
                           {"sub_ln", "crms", nn::kSubLn}};
  const Scale s = o.full ? Scale{512, 1e-5} : Scale{kNetWidth, 1e-4};
  ExperimentResult r;
  std::vector<Curve> curves;
  for (const NetKind& kind : kinds) {
    Curve c{kind.name, kind.css, {}};
    for (double depth : kDepths) {
      o.tell(text(kind.name, ", depth ", depth));
      double mean = 0;
      for (int i = 0; i < kUpdateSeeds; ++i) {
        o.go_on();
        mean += moved(kind, static_cast<int64_t>(depth), o.seed * 100 + static_cast<uint64_t>(i), s) / kUpdateSeeds;
      }
      c.values.push_back(mean);
    }
    curves.push_back(std::move(c));
  }
  std::vector<double> slopes;
  for (const Curve& c : curves) slopes.push_back(log_slope(kDepths, c.values, 0));
  const auto [least, most] = std::minmax_element(curves[1].values.begin(), curves[1].values.end());
  const double deep = *most / *least, below = curves[3].values.back() / curves[0].values.back();
  r.confirmed = deep < 1.4 && slopes[0] >= 1 && slopes[2] > 0 && slopes[2] < 1 && below < 0.2;
  r.measured =
      text("From 2 to 64 blocks a step moves DeepNorm's logits by amounts that differ by a factor of ", fixed(deep),
           ", Post-LN's by depth to the power of ", fixed(slopes[0]), ", Pre-LN's ", fixed(slopes[2]), ", Sub-LN's ",
           fixed(slopes[3]), ": that Sub-LN's are bounded whatever the depth (2210.06423, section 3) is ",
           slopes[3] < 0.1 ? "seen" : "not seen", " with width ", s.width, "; with 64 blocks they are ",
           printed("%.3f", below), " of Post-LN's.");
  r.refuted =
      "DeepNorm's changes apart by a factor of 1.4, a power of Post-LN below 1, a power of Pre-LN outside 0 to 1, or "
      "Sub-LN's changes above a fifth of Post-LN's";
  const std::string caption = text("|change of a row's logits| / rate after one step of SGD, rate ", s.rate,
                                   ", on all weights of the blocks, at the initial weights, width ", s.width,
                                   ", mean over rows and ", kUpdateSeeds, " seeds.");
  r.tables = {curve_table("Change by one step, by depth", caption, "depth", kDepths, curves)};
  r.figures = {curve_figure("depth", "Change by one step, by depth", caption, "blocks", kDepths, curves)};
  return r;
}

}  // namespace isonorm::papers
