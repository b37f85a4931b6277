// Norms in an encoder-decoder as the original Transformer has them, behind every sum: how many words each gets wrong, and
// what time its steps take.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/reduce.h"
#include "core/printed.h"
#include "core/random.h"
#include "core/system/blas_info.h"
#include "core/system/parallel.h"
#include "data/pairs.h"
#include "nn/encoder_decoder.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "papers/all.h"
#include "papers/nets/deep_net.h"
#include "papers/timing/turns.h"
#include "training/step.h"

namespace isonorm::papers {
namespace {

// Published: BLEU of WMT14 and WMT17, English to German, and the time of 1,000 steps divided by LayerNorm's (1910.07467,
// section 6.1, Transformer: 210, 248, 231 and 225 seconds).
struct Method {
  const char *name, *css;
  NormSpec norm;
  const char *published_bleu, *published_time;
};
constexpr Method kMethods[] = {
    {"no norm", "plain", {.kind = NormKind::none}, "fails", "0.847"},
    {"LayerNorm", "other", {.kind = NormKind::layer}, "26.6, 27.7", "1"},
    {"RMSNorm", "rms", {.kind = NormKind::rms}, "26.8, 27.7", "0.931"},
    {"RMSNorm of 6.25 %", "crms", {.kind = NormKind::rms, .p = 0.0625}, "26.5, 27.8", "0.907"}};
constexpr size_t kCount = std::size(kMethods), kLayer = 1, kRms = 2;

// x <- norm(x + branch(x)) with a gain, and LayerNorm's bias: any norm of whole rows, which no form of a stream maps.
class SumNorm : public nn::Connection {
 public:
  SumNorm(int64_t width, const NormSpec& norm)
      : Connection(width,
                   {.affine = true, .bias = norm.kind == NormKind::layer, .kind = norm.kind, .keeps_gain = true}),
        norm_(norm) {}
  Tensor read(nn::Residual& r) override { return r.settle(); }
  void join(nn::Residual& r, const Tensor& branch) override {
    r.stream = add_norm(r.settle(), branch, norm_, weight(), bias()).normed;
  }
  bool reads_stream() const override { return false; }

 private:
  NormSpec norm_;
};

template <size_t kMethod>
nn::BlockConnections block_of(int64_t width, const nn::ConnectionOptions&, const nn::BlockPlace& place) {
  return nn::each_sublayer(place, [&](int64_t) { return std::make_unique<SumNorm>(width, kMethods[kMethod].norm); });
}
template <size_t... i> constexpr std::array<nn::Arrangement, sizeof...(i)> arrangements(std::index_sequence<i...>) {
  return {
      nn::Arrangement{.name = kMethods[i].name, .block = block_of<i>, .last = nn::bare_last, .bare_entry = true}...};
}
constexpr auto kConnections = arrangements(std::make_index_sequence<kCount>());

struct Scale {
  int64_t width, depth, letters, context, pairs, rows, steps;
  double rate;
};

// One model in training, on batches that all are given alike.
class Trainee {
 public:
  Trainee(size_t method, const ExperimentOptions& o, const Scale& s, int64_t vocab) : context_(s.context) {
    manual_seed(o.seed);
    model_ = std::make_unique<nn::EncoderDecoder>(
        nn::EncoderDecoderOptions{.vocab = vocab,
                                  .context = s.context,
                                  .pad = data::kPad,
                                  .shared = true,
                                  .tied = true,
                                  .transformer = {.width = s.width,
                                                  .depth = s.depth,
                                                  .heads = 4,
                                                  .activation = nn::Activation::relu,
                                                  .affine = true,  // the head reads rows as they are
                                                  .connection = kConnections[method],
                                                  .initialisation = nn::Initialisation::normal}});
    model_->to(o.device);
    optimizer_ = std::make_unique<optim::Adam>(model_->parameters(), optim::AdamOptions{.beta2 = 0.98, .eps = 1e-9});
    step_ = std::make_unique<training::Step>(*model_, *optimizer_, training::smoothed_cross_entropy(0.1));
  }

  void step(const training::Examples& batch, double lr) {
    steps.add([&] { return (*step_)(batch, lr).loss; });
  }

  // The share of words that greedy decoding gets wrong: it gives a word exactly where each of its ids is the likeliest
  // behind those before.
  double error(const training::Examples& words) {
    if (!std::isfinite(steps.losses.back())) return 1;
    const NoGrad no_grad;
    model_->eval();
    const std::vector<int64_t> found = argmax((*model_)(words.inputs)).to_vector<int64_t>(),
                               labels = words.targets.to_vector<int64_t>();
    int64_t wrong = 0;
    for (size_t row = 0; row < labels.size(); row += static_cast<size_t>(context_)) {
      bool right = true;
      for (size_t i = row; i < row + static_cast<size_t>(context_); ++i)
        right = right && (labels[i] == data::kNoLabel || labels[i] == found[i]);
      wrong += !right;
    }
    return static_cast<double>(wrong) / static_cast<double>(words.targets.size(0));
  }

  TimedSteps steps;

 private:
  int64_t context_;
  std::unique_ptr<nn::EncoderDecoder> model_;
  std::unique_ptr<optim::Adam> optimizer_;
  std::unique_ptr<training::Step> step_;
};

std::string percent(double x) { return printed("%.2f", 100 * x); }

}  // namespace

ExperimentResult translator_norms(const ExperimentOptions& o) {
  const Scale s = o.full ? Scale{64, 4, 26, 20, 40000, 32, 3000, 1e-3} : Scale{32, 2, 16, 12, 8000, 32, 1200, 2e-3};
  constexpr size_t kShown = 20;  // means of losses over so many steps
  ExperimentResult r;
  const data::Pairs pairs =
      data::Pairs::made(data::Task::translate, s.pairs, s.context - 1, s.letters, o.seed, /*held_out=*/0.125);
  const optim::Schedule schedule{.peak = s.rate, .warmup = s.steps / 6, .decay = optim::Decay::inverse_sqrt};
  std::vector<std::unique_ptr<Trainee>> all;
  for (size_t i = 0; i < kCount; ++i) all.push_back(std::make_unique<Trainee>(i, o, s, pairs.vocab()));
  for (int64_t step = 0; step < s.steps; ++step) {
    o.go_on();
    const data::PairBatch b = pairs.batch(s.rows, s.context, step);
    const training::Examples batch = training::Examples{b.x, b.y}.on(o.device);
    for (size_t i = 0; i < kCount; ++i)  // each round begins with another one
      all[(i + static_cast<size_t>(step)) % kCount]->step(batch, schedule.lr(step));
    if (step % 50 == 0 && o.progress && !o.progress(text("step ", step, " of ", s.steps)))
      return r.interrupted = true, r;
  }
  const int64_t tested = std::min<int64_t>(1000, pairs.held_out_count());
  const data::PairBatch test = pairs.held_out_rows(0, tested, s.context);
  const training::Examples words = training::Examples{test.x, test.y}.on(o.device);

  const BlasInfo blas = blas_info();
  reports::TextTable table{
      .heading = "Words translated wrong, and times of steps, of an encoder-decoder",
      .columns = {"norm", "words wrong, %", "loss at the end", "time of a step", "published BLEU", "published time"},
      .caption = text(
          "Made words of up to ", s.context - 1, " of ", s.letters,
          " letters, to be written backwards in another alphabet; ", tested,
          " that were held out, decoded greedily behind ", s.steps, " steps of Adam, at up to ", s.rate, ", with ",
          s.rows, " words each and label smoothing of 0.1; width ", s.width, ", ", s.depth,
          " blocks in each stack, a norm behind every sum. Times are medians of the ratio to LayerNorm's step on the "
          "same batch, with their intervals of 99.8 %; f32, ",
          num_threads(), " threads, ", blas.version, " ", blas.core, ", ", o.device,
          ". Published: Transformer base on WMT14 and WMT17, time of 1,000 steps on a V100.")};
  std::vector<Curve> curves;
  std::vector<double> errors, times, at;
  for (int64_t step = kShown; step <= s.steps; step += kShown) at.push_back(static_cast<double>(step));
  for (size_t i = 0; i < kCount; ++i) {
    const Method& m = kMethods[i];
    Trainee& t = *all[i];
    Curve curve{m.name, m.css, t.steps.means(kShown)};
    const Median q = t.steps.time_ratio(all[kLayer]->steps);
    errors.push_back(t.error(words)), times.push_back(q.median);
    table.rows.push_back({{m.name},
                          {percent(errors.back()), {}, 100 * errors.back()},
                          {printed("%.3f", curve.values.back()), {}, curve.values.back()},
                          {printed("%.3f (%.3f to %.3f)", q.median, q.low, q.high), {}, q.median},
                          {m.published_bleu},
                          {m.published_time}});
    curves.push_back(std::move(curve));
  }
  const double noise = two_standard_errors(errors[kRms], errors[kLayer], tested);
  r.confirmed = errors[kRms] <= errors[kLayer] + noise;
  r.measured = text("RMSNorm gets ", percent(errors[kRms]), " % of the words wrong, RMSNorm of 6.25 % ",
                    percent(errors[3]), " %, LayerNorm ", percent(errors[kLayer]), " %, no norm ", percent(errors[0]),
                    " %; a step takes ", printed("%.3f", times[kRms]), ", ", printed("%.3f", times[3]), " and ",
                    printed("%.3f", times[0]), " of LayerNorm's time.");
  r.refuted = text("more words that RMSNorm gets wrong than LayerNorm, by more than two standard errors, ",
                   percent(noise), " %");
  r.tables = {std::move(table)};
  r.figures = {curve_figure("loss", "Training losses of an encoder-decoder",
                            text("Means over ", kShown, " steps, of the same batches."), "step", at, curves)};
  return r;
}

}  // namespace isonorm::papers
