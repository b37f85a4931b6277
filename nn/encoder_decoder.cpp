#include "nn/encoder_decoder.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "nn/modes.h"

namespace isonorm::nn {
namespace {

TransformerOptions of_decoder(const EncoderDecoderOptions& o) {
  TransformerOptions t = o.transformer;
  t.depth = o.decoder_depth, t.causal = true;
  return t;
}

}  // namespace

EncoderDecoderOptions EncoderDecoderOptions::complete() const {
  EncoderDecoderOptions o = *this;
  check(o.vocab > 0 && o.context > 0, "encoder-decoder: vocabulary ", o.vocab, " and context ", o.context,
        " must be positive");
  check(o.pad >= 0 && o.pad < o.vocab, "encoder-decoder: padding ", o.pad, " is not an id below ", o.vocab);
  check(o.decoder_depth >= 0, "encoder-decoder: a decoder of ", o.decoder_depth, " blocks");
  o.transformer.causal = false;
  o.transformer = o.transformer.complete();
  if (o.decoder_depth == 0) o.decoder_depth = o.transformer.depth;
  check(o.transformer.depth > 0, "encoder-decoder: depth 0, expected at least one block in each stack");
  return o;
}

EncoderDecoder::EncoderDecoder(const EncoderDecoderOptions& o)
    : options(o.complete()),
      target_(add("target", Embedding(o.vocab, o.transformer.width))),
      source_(o.shared ? target_ : add("source", Embedding(o.vocab, o.transformer.width))),
      source_position_(o.transformer.positions == Positions::learned
                           ? &add("source_position", Embedding(o.context, o.transformer.width))
                           : nullptr),
      target_position_(o.transformer.positions == Positions::learned
                           ? &add("target_position", Embedding(o.context, o.transformer.width))
                           : nullptr),
      encoder_(add("encoder", TransformerStack(options.transformer, Stack::encoder, options.decoder_depth))),
      encoder_norm_(add("encoder_norm", o.transformer.connection.last(o.transformer.width, o.transformer.last_norm()))),
      decoder_(add("decoder", TransformerStack(of_decoder(options), Stack::decoder, options.transformer.depth))),
      norm_(add("norm", o.transformer.connection.last(o.transformer.width, o.transformer.last_norm()))),
      head_(add("head", o.tied ? Linear::tied_to(target_)
                               : Linear(o.transformer.width, o.vocab, {.bias = o.transformer.bias}))) {
  options.transformer.initialise(*this, o.tied);
}

Tensor EncoderDecoder::entered(Embedding& table, Embedding* positions, const Tensor& ids, int64_t first) {
  check(ids.rank() == 2 && ids.size(1) > 0 && ids.size(1) <= options.context - first,
        "encoder-decoder: ids have shape ", ids.shape(), ", expected [batch, 1 to ", options.context - first, "]");
  Tensor x = table(ids);
  if (positions) x = x + positions_from(*positions, first, ids.size(1));
  return x.to(options.transformer.precision.residual_dtype(x.dtype()));
}

Encoded EncoderDecoder::encode(const Tensor& source) {
  Residual r{entered(source_, source_position_, source), {}};
  const Tensor padded = eq(source, options.pad);
  if (source.device() == kCpu) {
    const Tensor tokens = sum(padded.to(DType::f32), {1});
    const std::vector<float> counts = tokens.to_vector<float>();
    for (size_t i = 0; i < counts.size(); ++i)
      check(counts[i] < static_cast<float>(source.size(1)), "encoder-decoder: source ", i, " has only padding");
  }
  const Dims shape{source.size(0), 1, 1, source.size(1)};
  const Tensor zeros = full(shape, 0, {source_.weight.dtype(), source.device()});
  const Tensor mask = masked_fill(zeros, reshape(padded, shape), -INFINITY);
  encoder_(r, {.mask = mask});
  return {encoder_norm_.rows(r), mask};
}

Tensor EncoderDecoder::decode(const Encoded& encoded, const Tensor& target, DecodingCache* cache) {
  const int64_t seen = cache ? cache->time() : 0;
  Residual r{entered(target_, target_position_, target, seen), {}};
  check(seen > 0 || encoded.rows.size(0) == target.size(0), "encoder-decoder: ", encoded.rows.size(0),
        " sources are encoded, the targets have shape ", target.shape());
  decoder_(r, {.encoded = encoded.rows, .encoded_mask = encoded.mask, .cache = cache});
  const Tensor x = norm_.rows(r);
  return head_(x).to(head_.weight.dtype());
}

Tensor EncoderDecoder::forward(const Tensor& ids) {
  check(ids.rank() == 2 && ids.size(1) % 2 == 0 && ids.size(1) / 2 <= options.context,
        "encoder-decoder: ids have shape ", ids.shape(), ", expected [batch, 2 x time], time at most ",
        options.context);
  const int64_t time = ids.size(1) / 2;
  return decode(encode(narrow(ids, 1, 0, time)), narrow(ids, 1, time, time));
}

namespace {

struct Beam {
  std::vector<int64_t> ids;  // without `begin`
  double score = 0;          // sum of the logarithms of probabilities
  int64_t parent = 0;        // index of the prefix in the previous step that this one extends
};

double rank_of(const Beam& b, double alpha) {
  return b.score / std::pow((5 + static_cast<double>(b.ids.size())) / 6, alpha);
}

// The search for one source, encoded [1, ...].
std::vector<int64_t> search(EncoderDecoder& model, const Encoded& encoded, const DecodeOptions& o) {
  std::vector<Beam> alive = {{}};
  std::optional<Beam> best;  // the best prefix that has ended or has full length
  int64_t ended = 0;
  const auto keep = [&](const Beam& b) {
    if (!best || rank_of(b, o.length_penalty) > rank_of(*best, o.length_penalty)) best = b;
  };
  const Device device = encoded.rows.device();
  DecodingCache cache;
  std::vector<int64_t> last = {o.begin}, parents;  // of each live prefix: its last id and its Beam::parent
  for (int64_t step = 0; step < o.length && !alive.empty(); ++step) {
    cache.choose(parents);
    const Tensor logits = model.decode(encoded, to(from_vector(last, {std::ssize(last), 1}), device), &cache);
    const Tensor scores = log_softmax(select(logits, 1, -1).to(DType::f64), -1);
    const auto [values, at] = topk(scores, std::min(2 * std::min(o.beams, scores.size(1)), scores.size(1)), -1);
    const std::vector<double> value = values.to_vector<double>();
    check(std::none_of(value.begin(), value.end(), [](double v) { return std::isnan(v); }),
          "translate: the model's scores of id ", step + 1, " are NaN");
    const std::vector<int64_t> id = at.to_vector<int64_t>();
    std::vector<Beam> next;
    for (size_t i = 0; i < id.size(); ++i) {
      Beam b = alive[i / static_cast<size_t>(values.size(1))];
      b.parent = static_cast<int64_t>(i) / values.size(1);
      b.score += value[i];
      b.ids.push_back(id[i]);
      next.push_back(std::move(b));
    }
    std::stable_sort(next.begin(), next.end(), [](const Beam& a, const Beam& b) { return a.score > b.score; });
    alive.clear();
    for (int64_t i = 0; i < std::ssize(next) && std::ssize(alive) < o.beams; ++i) {
      if (next[i].ids.back() != o.end)
        alive.push_back(std::move(next[i]));
      else if (i < o.beams)  // an end that is not among the `beams` likeliest is dropped
        keep(next[i]), ++ended;
    }
    last.clear(), parents.clear();
    for (const Beam& b : alive) last.push_back(b.ids.back()), parents.push_back(b.parent);
    if (ended >= o.beams) break;
    // Scores only fall, and ranks with them. A live prefix cannot exceed an ended one if even its best rank, at full
    // length, is lower.
    if (best && !alive.empty()) {
      Beam longest = alive.front();
      longest.ids.resize(static_cast<size_t>(o.length));
      if (rank_of(longest, o.length_penalty) <= rank_of(*best, o.length_penalty)) break;
    }
  }
  for (const Beam& b : alive)
    if (std::ssize(b.ids) == o.length) keep(b);
  if (!best->ids.empty() && best->ids.back() == o.end) best->ids.pop_back();
  return best->ids;
}

}  // namespace

std::vector<std::vector<int64_t>> translate(EncoderDecoder& model, const Tensor& source, const DecodeOptions& o) {
  const EncoderDecoderOptions& m = model.options;
  DecodeOptions whole = o;
  if (o.length == 0) whole.length = m.context;
  check(o.beams > 0 && o.length >= 0 && o.length <= m.context, "translate: ", o.beams, " beams of ", o.length,
        " ids, expected at least 1 beam, and 1 to ", m.context, " ids or 0 for all of them");
  check(o.length_penalty >= 0 && std::isfinite(o.length_penalty), "translate: the length penalty is ", o.length_penalty,
        ", expected a finite number of at least 0");
  check(o.begin >= 0 && o.begin < m.vocab && o.end >= 0 && o.end < m.vocab, "translate: ids ", o.begin, " and ", o.end,
        " begin and end, expected ids below ", m.vocab);
  check(source.rank() == 2, "translate: sources have shape ", source.shape(), ", expected [batch, time]");
  const NoGrad no_grad;
  const EvaluationMode evaluation;
  std::vector<std::vector<int64_t>> found;
  for (int64_t i = 0; i < source.size(0); ++i)
    found.push_back(search(model, model.encode(narrow(source, 0, i, 1)), whole));
  return found;
}

}  // namespace isonorm::nn
