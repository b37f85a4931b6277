// Arrangements that are newer than 2305.14858: which have an exact RMSNorm form, what it takes, and what is wrong without it. Blocks
// x + W2 gelu(W1 z + b1) + b2 in f64, with random weights; P takes the mean of a row off.
//
//   Peri-LN (2502.02732)         x = N(E); x += N(F(N(x))). P E, P W2, P b2: N(P y) = LN(y), and what N writes has no mean. Behind a
//                                gain it has one, and P stands behind the gain.
//   OLMo 2 (2501.00656)          x = E; x += N(F(x)). P W2, P b2, and P before the last norm. E stays: F reads its mean.
//   hyper-connections            X <- M X + b F(N(a X)), for the rows X of several streams. M and a act on streams and P on entries: they
//   (2409.19606, 2512.24880)     commute, whatever M is. Coefficients that are computed of a row have to be blind to its mean.
//   QK-norm (2302.05442)         N(Wq z), N(Wk z): P Wq, P Wk, with the P of a head.
//   DyT, Derf (2503.10622,       tanh(a x) and erf(a x) act on each entry and see a row's mean: no model that reads P x alone is theirs.
//   2512.10938)
#include <functional>

#include "autograd/engine.h"
#include "autograd/methods.h"
#include "autograd/ops/arrange.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/softmax.h"
#include "papers/all.h"
#include "papers/margin.h"

namespace isonorm::papers {
namespace {

constexpr int64_t kRows = 12, kWidth = 24, kHidden = 40, kOut = 10, kBlocks = 3, kStreams = 4;
constexpr double kSame = 1e-12;      // as in invariance.cpp, of the largest number
constexpr double kDifferent = 1e-3;  // where the mean of a row is seen

struct Weights {
  Tensor table, first_gain, head, query, key, predictor;
  struct Block {
    Tensor w1, b1, w2, b2, gain, from, mix, to;  // from, to [streams, 1, 1]; mix [streams, streams]
  };
  std::vector<Block> blocks;
  std::vector<Tensor> all;

  Weights(Generator& random, Device device) {
    const auto draw = [&](const Dims& shape, double size) {
      return all.emplace_back(require_grad(randn(shape, {DType::f64, device}, random) * size));
    };
    table = draw({kRows, kWidth}, 1), first_gain = draw({kWidth}, 1), head = draw({kOut, kWidth}, 0.2);
    query = draw({kWidth, kWidth}, 0.2), key = draw({kWidth, kWidth}, 0.2), predictor = draw({kWidth, 1}, 0.2);
    for (int64_t i = 0; i < kBlocks; ++i)
      blocks.push_back({draw({kHidden, kWidth}, 0.2), draw({kHidden}, 0.2), draw({kWidth, kHidden}, 0.2),
                        draw({kWidth}, 0.2), draw({kWidth}, 1), draw({kStreams, 1, 1}, 0.5),
                        draw({kStreams, kStreams}, 0.5), draw({kStreams, 1, 1}, 0.5)});
  }
};

// What of a model is changed; nothing of the model with LayerNorm.
enum Change : unsigned { kRms = 1, kTable = 2, kWriters = 4, kSums = 8, kHeads = 16, kShift = 32 };

struct Net {
  const Weights& w;
  unsigned changes;

  Tensor centred(const Tensor& x, int dim, Change when) const { return changes & when ? recentre(x, dim) : x; }
  Tensor norm(const Tensor& x) const { return changes & kRms ? rms_norm(x) : layer_norm(x); }
  Tensor table() const {
    const Tensor rows = centred(w.table, -1, kTable);
    return changes & kShift ? rows + 0.5 : rows;
  }
  Tensor branch(const Weights::Block& b, const Tensor& z) const {
    return linear(gelu(linear(z, b.w1, b.b1)), centred(b.w2, 0, kWriters), centred(b.b2, 0, kWriters));
  }
  Tensor sum_of(const Tensor& x) const { return centred(x, -1, kSums); }
  Tensor logits(const Tensor& rows) const { return linear(rows, w.head); }
};

Tensor peri(const Net& n) {
  Tensor x = n.norm(n.table());
  for (const auto& b : n.w.blocks) x = x + n.norm(n.branch(b, n.norm(x)));
  return n.logits(n.norm(x));
}

Tensor peri_with_gains(const Net& n) {
  Tensor x = n.sum_of(n.w.first_gain * n.norm(n.table()));
  for (const auto& b : n.w.blocks) x = x + n.sum_of(b.gain * n.norm(n.branch(b, n.norm(x))));
  return n.logits(n.norm(x));
}

Tensor olmo2(const Net& n) {
  Tensor x = n.table();
  for (const auto& b : n.w.blocks) x = x + n.norm(n.branch(b, x));
  return n.logits(n.norm(n.sum_of(x)));
}

// predicted: what is added to the coefficients of the rows that a block reads, [streams, rows, 1] of X [streams, rows, width].
Tensor hyper(const Net& n, const std::function<Tensor(const Tensor&)>& predicted = {}) {
  Tensor x = unsqueeze(n.table(), 0) * ones({kStreams, 1, 1}, n.w.table.options());
  for (const auto& b : n.w.blocks) {
    const Tensor from = predicted ? b.from + predicted(x) : b.from;
    const Tensor y = n.branch(b, n.norm(sum(from * x, {0})));
    x = reshape(matmul(b.mix, reshape(x, {kStreams, -1})), x.shape()) + b.to * unsqueeze(y, 0);
  }
  return n.logits(n.norm(sum(x, {0})));
}
Tensor hyper_static(const Net& n) { return hyper(n); }
Tensor hyper_normed(const Net& n) {
  return hyper(n, [&](const Tensor& x) { return tanh(matmul(n.norm(x), n.w.predictor)); });
}
Tensor hyper_bare(const Net& n) {
  return hyper(n, [&](const Tensor& x) { return tanh(matmul(x, n.w.predictor)); });
}

Tensor qk_norm(const Net& n) {
  const Tensor z = n.norm(n.table());
  const Tensor q = n.norm(linear(z, n.centred(n.w.query, 0, kHeads))),
               k = n.norm(linear(z, n.centred(n.w.key, 0, kHeads)));
  const Tensor x = n.table() + n.branch(n.w.blocks[0], matmul(softmax(matmul(q, transpose(k, 0, 1))), z));
  return n.logits(n.norm(x));
}

Tensor pointwise(const Net& n, Tensor (*f)(const Tensor&)) {
  Tensor x = n.table();
  for (const auto& b : n.w.blocks) x = x + n.branch(b, f(0.5 * x));
  return n.logits(f(0.5 * x));
}
Tensor dyt(const Net& n) { return pointwise(n, tanh); }
Tensor derf(const Net& n) { return pointwise(n, erf); }

struct Arrangement {
  const char* name;
  Tensor (*run)(const Net&);
  unsigned exact;  // 0: there is no exact form
  const char* form;
  struct Wrong {
    const char* what;
    unsigned changes;
  };
  std::vector<Wrong> wrong;
};

const std::vector<Arrangement>& arrangements() {
  constexpr unsigned kMapped = kRms | kTable | kWriters;
  static const std::vector<Arrangement> all = {
      {"Peri-LN", peri, kMapped, "P E, P W2", {{"E as it is", kRms | kWriters}, {"W2 as it is", kRms | kTable}}},
      {"Peri-LN with gains",
       peri_with_gains,
       kMapped | kSums,
       "P E, P W2, P behind gains",
       {{"no P behind gains", kMapped}}},
      {"OLMo 2",
       olmo2,
       kRms | kWriters | kSums,
       "P W2, P before the last norm",
       {{"P E, too", kMapped | kSums}, {"no P before the last norm", kRms | kWriters}}},
      {"hyper-connections", hyper_static, kMapped, "P E, P W2", {{"W2 as it is", kRms | kTable}}},
      {"hyper-connections of N(X)", hyper_normed, kMapped, "P E, P W2", {{"E as it is", kRms | kWriters}}},
      {"hyper-connections of X", hyper_bare, 0, "none", {{"P E, P W2", kMapped}, {"E + 1/2: P E is the same", kShift}}},
      {"QK-norm", qk_norm, kMapped | kHeads, "P E, P W2; P Wq, P Wk", {{"Wq, Wk as they are", kMapped}}},
      {"DyT", dyt, 0, "none", {{"P E, P W2", kTable | kWriters}, {"E + 1/2: P E is the same", kShift}}},
      {"Derf", derf, 0, "none", {{"P E, P W2", kTable | kWriters}, {"E + 1/2: P E is the same", kShift}}}};
  return all;
}

struct Outcome {
  Tensor logits;
  std::vector<Tensor> gradients;  // of the weights that were read
};

Outcome outcome(const Arrangement& a, const Weights& w, unsigned changes, const Tensor& upstream) {
  for (const Tensor& p : w.all) set_grad(p, {});
  Outcome o{a.run({w, changes}), {}};
  backward(sum(o.logits * upstream));
  for (const Tensor& p : w.all) o.gradients.push_back(p.grad());
  return o;
}

double largest(const Tensor& x) { return amax(abs(detach(x))).item(); }
double off(const Tensor& x, const Tensor& reference) { return largest(x - reference) / largest(reference); }
// Relative to the largest number of all: of a tensor that the model hardly sees rounding is all there is.
double gradients_off(const Outcome& o, const Outcome& reference) {
  double worst = 0, size = 0;
  for (size_t i = 0; i < o.gradients.size(); ++i) {
    if (!reference.gradients[i].defined()) continue;
    worst = std::max(worst, largest(o.gradients[i] - reference.gradients[i]));
    size = std::max(size, largest(reference.gradients[i]));
  }
  return worst / size;
}

}  // namespace

ExperimentResult newer_norms(const ExperimentOptions& options) {
  Generator random{options.seed, 0};
  const Weights w(random, options.device);
  const Tensor upstream = randn({kRows, kOut}, {DType::f64, options.device}, random);
  ExperimentResult r;
  Margin margin(kSame, kDifferent);
  reports::TextTable table{.heading = "Newer arrangements and their RMSNorm forms",
                           .columns = {"arrangement", "exact form", "logits", "gradients", "not exact", "logits off"},
                           .caption =
                               "Largest deviation from the model with LayerNorm, relative to the largest logit and to "
                               "the largest gradient of all. Gradients are "
                               "those of E, W2, ... before P."};
  reports::DotPlot plot{.title = "Deviation of the logits from the model with LayerNorm",
                        .axis = "relative to the largest logit  (filled: expected to be rounding)",
                        .low = 1e-17,
                        .high = 100,
                        .zones = {{"good", "the same", 1e-17, kSame}, {"bad", "another function", kDifferent, 100}}};
  for (const Arrangement& a : arrangements()) {
    const Outcome reference = outcome(a, w, 0, upstream);
    std::vector<reports::TextCell> begin = {{a.name}, {a.form}, {"-"}, {"-"}};
    plot.rows.push_back({a.name, {}});
    const auto dot = [&](const char* css, const std::string& what, double deviation, bool same) {
      plot.rows.back().dots.push_back({css, text(what, ": ", scientific(deviation)), deviation, same});
    };
    if (a.exact) {
      const Outcome exact = outcome(a, w, a.exact, upstream);
      const double logits = off(exact.logits, reference.logits), gradients = gradients_off(exact, reference);
      begin[2] = reports::number_cell(logits, margin.take(logits, true));
      begin[3] = reports::number_cell(gradients, margin.take(gradients, true));
      dot("rms", a.form, logits, true);
    }
    for (const Arrangement::Wrong& wrong : a.wrong) {
      const double deviation = off(a.run({w, wrong.changes}), reference.logits);
      table.rows.push_back(begin);
      table.rows.back().push_back({wrong.what});
      table.rows.back().push_back(reports::number_cell(deviation, margin.take(deviation, false)));
      dot("negative", wrong.what, deviation, false);
      begin = {{""}, {""}, {""}, {""}};
    }
  }
  r.tables.push_back(std::move(table));
  reports::Panel panel;
  panel.legend = {{"dot solid rms", "exact form"}, {"dot solid negative", "without a part of it"}};
  panel.drawing = std::move(plot);
  r.figures.push_back(
      {.name = "forms",
       .heading = "What it takes to be the same model",
       .panels = {std::move(panel)},
       .caption = "Filled dots have to lie on the left, hollow ones on the right. DyT and Derf act on each entry: "
                  "they see the mean of a row, which no RMSNorm form keeps."});
  r.confirmed = margin.kept();
  r.measured = text("Exact forms deviate by at most ", scientific(margin.largest_same()),
                    ", in logits and gradients; what lacks a part of them, or has none, by at least ",
                    scientific(margin.smallest_different()), ".");
  r.refuted = margin.refuted();
  return r;
}

}  // namespace isonorm::papers
