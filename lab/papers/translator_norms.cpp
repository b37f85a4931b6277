// Norms in an encoder-decoder, placed as in the original Transformer, after every sum: error rates and step times.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/rivals.h"

namespace isonorm::papers {
namespace {

// Published: BLEU on WMT14 and WMT17, English to German; time of 1,000 steps divided by LayerNorm's (1910.07467,
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

// x <- norm(x + branch(x)) with a gain, and with a bias for LayerNorm. Any norm of whole rows works, since no form maps
// this stream.
class SumNorm : public nn::Connection {
 public:
  SumNorm(int64_t width, const NormSpec& norm)
      : Connection(width, {.affine = true, .bias = norm.kind == NormKind::layer, .kind = norm.kind, .foldable = false}),
        norm_(norm) {}
  Tensor read(nn::Residual& r) override { return r.settle(); }
  void join(nn::Residual& r, const Tensor& branch) override {
    r.sum = add_norm(r.settle(), branch, norm_, weight(), bias()).normed;
  }
  bool reads_residual() const override { return false; }

 private:
  NormSpec norm_;
};

template <size_t kMethod>
nn::BlockConnections block_of(int64_t width, const nn::ConnectionOptions&, const nn::BlockPlace& place) {
  return nn::each_sublayer(place, [&](int64_t) { return std::make_unique<SumNorm>(width, kMethods[kMethod].norm); });
}
template <size_t... i> constexpr std::array<nn::Arrangement, sizeof...(i)> arrangements(std::index_sequence<i...>) {
  return {nn::Arrangement{
      .name = kMethods[i].name, .block = block_of<i>, .last = nn::bare_last, .reads_embeddings = true}...};
}
constexpr auto kConnections = arrangements(std::make_index_sequence<kCount>());

struct Scale {
  int64_t width, depth, letters, context, pairs, rows, steps;
  double rate;
};

std::unique_ptr<nn::Module> model_of(size_t method, const Scale& s, int64_t vocab) {
  auto model = std::make_unique<nn::EncoderDecoder>(
      nn::EncoderDecoderOptions{.vocab = vocab,
                                .context = s.context,
                                .pad = data::kPad,
                                .shared = true,
                                .tied = true,
                                .transformer = {.width = s.width,
                                                .depth = s.depth,
                                                .heads = 4,
                                                .activation = nn::Activation::relu,
                                                .affine = true,  // the head reads the rows directly
                                                .connection = kConnections[method],
                                                .initialisation = nn::Initialisation::normal}});
  // Embeddings of variance 2/5, as with an untied head: without a norm before the first branch, small ones train
  // slowly.
  const NoGrad no_grad;
  for (const auto& [_, module] : model->named_modules())
    if (const auto* table = dynamic_cast<const nn::Embedding*>(module))
      copy_into(table->weight.stored(), table->weight.stored() * (std::sqrt(0.4) / 0.02));
  return model;
}

// The fraction of words that greedy decoding gets wrong. A word is decoded correctly if and only if each of its ids is
// the most likely one after the correct ids before it.
double error_of(const Rival& rival, const training::Examples& words) {
  if (!std::isfinite(rival.steps.losses.back())) return 1;
  const NoGrad no_grad;
  rival.model->eval();
  const std::vector<int64_t> found = argmax((*rival.model)(words.inputs)).to_vector<int64_t>(),
                             labels = words.targets.to_vector<int64_t>();
  const auto count = static_cast<size_t>(words.targets.size(0)), letters = labels.size() / count;
  int64_t wrong = 0;
  for (size_t row = 0; row < labels.size(); row += letters) {
    bool right = true;
    for (size_t i = row; i < row + letters; ++i)
      right = right && (labels[i] == data::kNoLabel || labels[i] == found[i]);
    wrong += !right;
  }
  return static_cast<double>(wrong) / static_cast<double>(count);
}

}  // namespace

ExperimentResult translator_norms(const ExperimentOptions& o) {
  const Scale s = o.full ? Scale{64, 4, 26, 20, 40000, 32, 3000, 1e-3} : Scale{32, 2, 16, 12, 8000, 32, 1200, 2e-3};
  ExperimentResult r;
  const data::Pairs pairs =
      data::Pairs::made(data::Task::translate, s.pairs, s.context - 1, s.letters, o.seed, /*held_out=*/0.125);
  const optim::Schedule schedule{.peak = s.rate, .warmup = s.steps / 6, .decay = optim::Decay::inverse_sqrt};
  Rivals all;
  for (size_t i = 0; i < kCount; ++i) {
    manual_seed(o.seed);
    all.push_back(std::make_unique<Rival>(kMethods[i].name, kMethods[i].css, model_of(i, s, pairs.vocab()), o.device,
                                          optim::AdamOptions{.beta2 = 0.98, .eps = 1e-9},
                                          training::smoothed_cross_entropy(0.1)));
  }
  const auto batch_of = [&](int64_t step) {
    const data::PairBatch b = pairs.batch(s.rows, s.context, step);
    return training::Examples{b.x, b.y}.on(o.device);
  };
  race(o, all, s.steps, batch_of, [&](int64_t step) { return schedule.lr(step); });
  const int64_t tested = std::min<int64_t>(1000, pairs.held_out_count());
  const data::PairBatch test = pairs.held_out_rows(0, tested, s.context);
  const training::Examples words = training::Examples{test.x, test.y}.on(o.device);

  reports::TextTable table{
      .heading = "Words translated wrong, and times of steps, of an encoder-decoder",
      .columns = {"norm", "words wrong, %", "loss at the end", "time of a step", "published BLEU", "published time"},
      .caption = text("Made words of up to ", s.context - 1, " of ", s.letters,
                      " letters, to be written backwards in another alphabet; ", tested,
                      " held-out words, decoded greedily after ", s.steps, " steps of Adam, at up to ", s.rate,
                      ", with ", s.rows, " words each and label smoothing of 0.1; width ", s.width, ", ", s.depth,
                      " blocks in each stack, a norm after every sum. Times are medians of the ratio to LayerNorm's "
                      "step on the same batch, with their intervals of 99.8 %; f32, ",
                      machine_text(), ", ", o.device,
                      ". Published: Transformer base on WMT14 and WMT17, time of 1,000 steps on a V100.")};
  std::vector<double> errors, times;
  for (size_t i = 0; i < kCount; ++i) {
    const Method& m = kMethods[i];
    errors.push_back(error_of(*all[i], words));
    table.rows.push_back(row_of(*all[i], errors.back(), *all[kLayer]));
    times.push_back(*table.rows.back()[3].value);
    for (const char* published : {m.published_bleu, m.published_time}) table.rows.back().push_back({published});
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
  r.figures = {losses_of(all, "Training losses of an encoder-decoder", "batches")};
  return r;
}

}  // namespace isonorm::papers
