// E5 and E6: how far one step of SGD on all blocks moves the network's output, by depth.
#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"
#include "core/view.h"
#include "lab/papers/all.h"
#include "lab/papers/nets/deep_net.h"
#include "streams/parametrize.h"

namespace isonorm::papers {
namespace {

constexpr int kSeeds = 4;
const std::vector<double> kDepths = {2, 4, 8, 16, 32, 64};

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

std::string fixed(double x) { return printed("%.2f", x); }

}  // namespace

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
      for (int i = 0; i < kSeeds; ++i) {
        o.go_on();
        mean += moved(kind, static_cast<int64_t>(depth), o.seed * 100 + static_cast<uint64_t>(i), s) / kSeeds;
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
                                   ", mean over rows and ", kSeeds, " seeds.");
  r.tables = {curve_table("Change by one step, by depth", caption, "depth", kDepths, curves)};
  r.figures = {curve_figure("depth", "Change by one step, by depth", caption, "blocks", kDepths, curves)};
  return r;
}

}  // namespace isonorm::papers
