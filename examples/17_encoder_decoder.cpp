// An encoder-decoder learns to write words backwards in another alphabet, with label smoothing and the schedule of the
// original paper (1706.03762). Then it translates words that it never saw, greedily and with beam search.
//   usage: 17_encoder_decoder [steps [connection]]
#include <algorithm>
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

namespace {

nn::Arrangement connection_of(std::string_view name) {
  for (const nn::Arrangement& a : nn::kArrangements)
    if (name == a.name) return a;
  check(false, "\"", name, "\" is no connection, see nn/residual/all.h");
  return nn::kPreLn;
}

}  // namespace

int main(int argc, char** argv) try {
  constexpr int64_t kLength = 10;  // length of a row: words of at most 9 letters and an end
  const int steps = argc > 1 ? whole_number(argv[1]) : 600;
  const nn::Arrangement connection = connection_of(argc > 2 ? argv[2] : "pre_ln");
  manual_seed(1);
  const data::Pairs pairs =
      data::Pairs::made(data::Task::translate, 4000, kLength - 1, /*letters=*/8, /*seed=*/1, /*held_out=*/0.05);
  nn::EncoderDecoder model = streams::make<nn::EncoderDecoder>(
      {.vocab = pairs.vocab(),
       .context = kLength,
       .pad = data::kPad,
       .shared = true,
       .transformer = {.width = 48, .depth = 2, .heads = 4, .branch = {.dropout = 0.1}, .connection = connection}},
      {.form = streams::Form::rms_norm});
  optim::Adam adam(model.parameters());
  const optim::Schedule schedule{.peak = 3e-3, .warmup = 100, .decay = optim::Decay::inverse_sqrt};
  const training::Objective smoothed = [](nn::Module& m, const training::Examples& b) {
    return cross_entropy(m(b.inputs), b.targets, {.ignore_index = data::kNoLabel, .label_smoothing = 0.1});
  };
  training::Step step(model, adam, smoothed, {.limits = {.norm = 1}});
  for (int t = 0; t < steps; ++t) {
    const data::PairBatch batch = pairs.batch(/*rows=*/64, kLength, t);
    const double loss = step({batch.x, batch.y}, schedule.lr(t)).loss;
    if (t % 100 == 0) std::printf("%5d  loss %.4f\n", t, loss);
  }

  const int64_t held_out = pairs.held_out_count();
  const data::PairBatch test = pairs.held_out_rows(0, held_out, kLength);
  const Tensor sources = narrow(test.x, 1, 0, kLength);
  const std::vector<int64_t> ids = sources.to_vector<int64_t>(), labels = test.y.to_vector<int64_t>();
  const auto row = [&](const std::vector<int64_t>& all, int64_t i) {
    std::vector<int64_t> r(all.begin() + i * kLength, all.begin() + (i + 1) * kLength);
    std::replace(r.begin(), r.end(), data::kNoLabel, data::kPad);
    return pairs.decode(r);
  };
  for (const int64_t beams : {1, 4}) {
    const auto found =
        nn::translate(model, sources, {.begin = data::kBegin, .end = data::kEnd, .length = kLength, .beams = beams});
    int64_t right = 0;
    for (int64_t i = 0; i < held_out; ++i) right += pairs.decode(found[static_cast<size_t>(i)]) == row(labels, i);
    std::printf("%d beam%s: %d of %d held-out words right; %s -> %s\n", static_cast<int>(beams), beams == 1 ? "" : "s",
                static_cast<int>(right), static_cast<int>(held_out), row(ids, 0).c_str(),
                pairs.decode(found[0]).c_str());
  }
} catch (const Error& e) {
  return std::fprintf(stderr, "17_encoder_decoder: %s\n", e.what()), 1;
}
