// E11 and E12: a GRU without a norm, with LayerNorm, with RMSNorm and with RMSNorm over a part of the entries, with
// initial weights around 0 and around 0.2.
#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/margin.h"
#include "lab/papers/nets/deep_net.h"
#include "streams/parametrize.h"

namespace isonorm::papers {
namespace {

constexpr int64_t kBatch = 32;            // sequences per step
constexpr size_t kSeeds = 3, kSeen = 20;  // losses are shown as means over kSeen steps

struct Kind {
  const char *name, *css;
  NormKind norm;
  double p = 1;
};
constexpr Kind kKinds[] = {{"no norm", "plain", NormKind::none},
                           {"LayerNorm", "other", NormKind::layer},
                           {"RMSNorm", "rms", NormKind::rms},
                           {"RMSNorm of 25 %", "crms", NormKind::rms, 0.25},
                           {"RMSNorm of 6.25 %", "isometric", NormKind::rms, 0.0625}};

struct Scale {
  int64_t vocabulary, width, hidden, delay, time, steps;
  double rate;
};
Scale scale_of(const ExperimentOptions& o) {
  return o.full ? Scale{32, 64, 128, 10, 24, 1500, 2e-3} : Scale{8, 16, 32, 3, 12, 300, 5e-3};
}

class Tagger : public nn::Module {
 public:
  Tagger(const Kind& k, const Scale& s)
      : table_(add("table", nn::Embedding(s.vocabulary, s.width))),
        gru(add("gru", nn::Gru({.inputs = s.width,
                                .hidden = s.hidden,
                                .norm = k.norm,
                                .p = k.p,
                                .initialisation = nn::RecurrentInitialisation::orthogonal}))),
        head_(add("head", nn::Linear(s.hidden, s.vocabulary))) {}
  Tensor forward(const Tensor& ids) override { return head_(gru(table_(ids)).output); }

 private:
  nn::Embedding& table_;

 public:
  nn::Gru& gru;

 private:
  nn::Linear& head_;
};

// The losses of a training, by step. Task: from position `delay` on, predict the token `delay` positions back. `centre`
// is added to all initial weights of the GRU's matrices.
std::vector<double> losses_of(const ExperimentOptions& o, const Kind& kind, uint64_t seed, double centre,
                              const Scale& s) {
  manual_seed(seed);
  Tagger model(kind, s);
  model.to(DType::f64);
  for (const streams::NamedParameter& p : streams::named_parameters(model.gru))
    if (p.tensor.rank() == 2) copy_into(detach(p.tensor), detach(p.tensor) + centre);
  optim::Adam adam(model.parameters(), {.lr = s.rate});
  Generator draw{.seed = seed + 1000};
  std::vector<double> losses;
  for (int64_t step = 0; step < s.steps; ++step) {
    o.go_on();
    const Tensor ids = randint(0, s.vocabulary, {kBatch, s.time}, kCpu, draw);
    for (const Tensor& p : model.parameters()) set_grad(p, {});
    const int64_t judged = s.time - s.delay;
    const Tensor logits = reshape(narrow(model(ids), 1, s.delay, judged), {kBatch * judged, s.vocabulary});
    const Tensor loss = cross_entropy(logits, reshape(narrow(ids, 1, 0, judged), {kBatch * judged}));
    backward(loss);
    adam.step();
    losses.push_back(loss.item());
  }
  return losses;
}

using Runs = std::vector<std::vector<double>>;  // losses of every kind and seed, kind by kind

Runs trained(const ExperimentOptions& o, std::span<const Kind> kinds, double centre, const Scale& s) {
  Runs all(kinds.size() * kSeeds);
  o.train_all(all.size(),
              [&](size_t i) { all[i] = losses_of(o, kinds[i / kSeeds], o.seed * 100 + i % kSeeds, centre, s); });
  return all;
}

// Mean loss of the kSeen steps before `step`.
double mean_before(const std::vector<double>& losses, double step) {
  double mean = 0;
  for (auto t = static_cast<size_t>(step) - kSeen; t < static_cast<size_t>(step); ++t) mean += losses[t] / kSeen;
  return mean;
}

// mean_before() of a kind at each step of `steps`, mean over the seeds.
Curve curve_of(const char* name, const char* css, const Runs& runs, size_t kind, const std::vector<double>& steps) {
  Curve curve{name, css, std::vector<double>(steps.size())};
  for (size_t i = kind * kSeeds; i < (kind + 1) * kSeeds; ++i)
    for (size_t t = 0; t < steps.size(); ++t) curve.values[t] += mean_before(runs[i], steps[t]) / kSeeds;
  return curve;
}

std::string fixed(double x) { return printed("%.3f", x); }

std::string task_of(const Scale& s) {
  return text("For each token, the GRU predicts the token ", s.delay, " before it: ", s.vocabulary, " tokens, ", s.time,
              " in a row, ", kBatch, " rows a step, Adam at ", s.rate, ", f64; hidden size ", s.hidden,
              ", orthogonal initial recurrent weights. The loss of a uniform prediction is ",
              printed("%.2f", std::log(static_cast<double>(s.vocabulary))), ".");
}

// s.steps divided by each of `parts`.
std::vector<double> shares(const Scale& s, std::initializer_list<int64_t> parts) {
  std::vector<double> at;
  for (int64_t part : parts) at.push_back(static_cast<double>(s.steps / part));
  return at;
}

}  // namespace

ExperimentResult recurrent_norms(const ExperimentOptions& o) {
  const Scale s = scale_of(o);
  ExperimentResult r;
  const auto runs = trained(o, kKinds, 0, s);
  const std::vector<double> at = shares(s, {6, 3, 2, 1}), steps = every(kSeen, s.steps);
  std::vector<Curve> ends, curves;
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    ends.push_back(curve_of(kKinds[k].name, kKinds[k].css, runs, k, at));
    curves.push_back(curve_of(kKinds[k].name, kKinds[k].css, runs, k, steps));
  }
  const double none = ends[0].values[2], layer = ends[1].values[2], rms = ends[2].values[2];
  const auto by_seed = [&](size_t kind) {
    std::vector<double> losses;
    for (size_t i = 0; i < kSeeds; ++i) losses.push_back(mean_before(runs[kind * kSeeds + i], at[2]));
    return losses;
  };
  const Difference apart = paired_difference(by_seed(2), by_seed(1));
  const bool help = layer < none && rms < none;
  r.confirmed = std::abs(apart.mean) < 0.1 * layer && help;
  r.undecided = !r.confirmed && help && std::abs(apart.mean) - apart.half < 0.1 * layer;
  r.measured =
      text("After ", at[2], " steps the loss is ", fixed(none), " without a norm, ", fixed(layer), " with LayerNorm, ",
           fixed(rms), " with RMSNorm, ", fixed(ends[3].values[2]), " and ", fixed(ends[4].values[2]),
           " with RMSNorm of 25 % and of 6.25 % of the entries; RMSNorm's minus LayerNorm's is ", fixed(apart.mean),
           " +- ", fixed(apart.half), " (95 %).");
  r.refuted =
      "a loss of RMSNorm a tenth above or below LayerNorm's beyond the interval, or a loss of either above the loss "
      "without a norm";
  r.tables = {curve_table("Losses of a GRU", text(task_of(s), " Means over ", kSeen, " steps and ", kSeeds, " seeds."),
                          "step", at, ends)};
  r.figures = {curve_figure("loss", "Losses of a GRU", task_of(s), "step", steps, curves)};
  return r;
}

ExperimentResult recurrent_centre(const ExperimentOptions& o) {
  constexpr double kCentre = 0.2;
  const Scale s = scale_of(o);
  const std::span<const Kind> kinds(kKinds, 3);
  ExperimentResult r;
  const Runs usual = trained(o, kinds, 0, s), shifted = trained(o, kinds, kCentre, s);
  const std::vector<double> at = shares(s, {6, 2, 1}), steps = every(kSeen, s.steps);
  std::vector<Curve> ends, curves;
  const char* css[] = {"plain", "other", "rms", "negative", "nested other", "nested rms"};
  const char* names[] = {"no norm, around 0",   "LayerNorm, around 0",   "RMSNorm, around 0",
                         "no norm, around 0.2", "LayerNorm, around 0.2", "RMSNorm, around 0.2"};
  for (size_t k = 0; k < 6; ++k) {
    ends.push_back(curve_of(names[k], css[k], k < 3 ? usual : shifted, k % 3, at));
    curves.push_back(curve_of(names[k], css[k], k < 3 ? usual : shifted, k % 3, steps));
  }
  // Largest relative change of a kind's losses by the shift, over the first 50 steps, in which rounding cannot grow.
  const auto apart = [&](size_t kind) {
    double most = 0;
    for (size_t i = kind * kSeeds; i < (kind + 1) * kSeeds; ++i)
      for (size_t t = 0; t < 50; ++t) most = std::max(most, std::abs(shifted[i][t] / usual[i][t] - 1));
    return most;
  };
  const double none = ends[3].values[2], rms = ends[5].values[2], before = ends[2].values[2];
  r.confirmed = apart(1) < 1e-9 && apart(0) > 1e-2 && apart(2) > 1e-2;
  r.measured = text("With all weight matrices ", kCentre,
                    " higher, LayerNorm's losses equal the losses from weights around 0 to ", scientific(apart(1)),
                    " over 50 steps; after ", s.steps, " steps RMSNorm's is ", fixed(rms), " instead of ",
                    fixed(before), ", the loss without a norm ", fixed(none),
                    ". That RMSNorm does not suffer from such weights, as its authors' figure has it, is ",
                    rms < 1.25 * before ? "seen." : "not seen: it learns, later.");
  r.refuted = "losses of LayerNorm further than 1e-9 apart, or losses of another kind nearer than 1e-2";
  r.tables = {curve_table("Losses from weights around 0 and around 0.2",
                          text(task_of(s), " Means over ", kSeen, " steps and ", kSeeds, " seeds."), "step", at, ends)};
  r.figures = {curve_figure("loss", "Losses from weights around 0 and around 0.2", task_of(s), "step", steps, curves)};
  return r;
}

}  // namespace isonorm::papers
