// A GPT on four ranks that share its heads, hidden units and rows, trained next to the same GPT in one process: bytes
// sent and deviation of the weights.
//
// One residual branch on N ranks, with w stored numbers per row (d, or d - 1 for CRMSNorm): the output is summed, and
// so is the gradient of the input. Each sum sends 2 (N - 1) / N w numbers. If the ranks share the rows, a sum becomes a
// gather and a scatter of (N - 1) / N w numbers each: the same total.
#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/margin.h"
#include "lab/papers/ranks/gpt.h"

namespace isonorm::papers {
namespace {

using distributed::Group;
using parallel::TensorParallel;
using streams::Form;

constexpr int kRanks = 4, kSteps = 10;
constexpr int64_t kWidth = 24, kDepth = 2;
constexpr double kSame = 1e-12, kDifferent = 1e-7;  // relative to the largest weight; AdamW's eps is far above rounding

enum class Fault { none, clipped_apart, another_part };

struct Measured {
  double off = 0;     // relative to the largest weight
  int64_t bytes = 0;  // sent by a rank in forward and backward
};

nn::Gpt made(const nn::GptOptions& o, Form form, uint64_t seed) {
  manual_seed(seed);
  nn::Gpt model = streams::make<nn::Gpt>(o, {.form = form});
  model.to(DType::f64);
  return model;
}

void train(nn::Gpt& model, TensorParallel* split, const ExperimentOptions& options) {
  optim::AdamW adamw(model.parameters(), {.lr = 1e-3, .eps = 1e-6});
  training::Step step(model, adamw, training::cross_entropy_of, {.limits = {.norm = 0.1}, .parts = split});
  for (int t = 0; t < kSteps; ++t) step(rank_batch(options.seed, t));
}

// A hand-written training loop that clips by the norm of this rank's gradients. (Step refuses a model that is only a
// rank's part.)
void train_clipped_apart(nn::Gpt& part, const ExperimentOptions& options) {
  optim::AdamW adamw(part.parameters(), {.lr = 1e-3, .eps = 1e-6});
  for (int t = 0; t < kSteps; ++t) {
    adamw.zero_grad();
    backward(training::cross_entropy_of(part, rank_batch(options.seed, t)));
    optim::clip_grad_norm(part.parameters(), 0.1);
    adamw.step();
  }
}

double off(const TensorMap& found, const TensorMap& expected) {
  double worst = 0, size = 0;
  for (const auto& [name, x] : expected) {
    worst = std::max(worst, amax(abs(*found.find(name) - x)).item());
    size = std::max(size, amax(abs(x)).item());
  }
  return worst / size;
}

Measured measured(Form form, bool rows, Fault fault, const TensorMap& start, const TensorMap& end,
                  const ExperimentOptions& options) {
  Measured m;
  const nn::GptOptions o = rank_gpt(kWidth, kDepth);
  distributed::run_ranks(kRanks, [&](Group& g) {
    nn::Gpt part = made(parallel::part_of(o, g), form, options.seed);
    TensorParallel split(part, o.transformer, g, {.rows = rows});
    TensorMap from = nn::clone(start);
    if (fault == Fault::another_part && g.rank() == 1) {  // exchanges the columns of two heads
      const Tensor w = *from.find("blocks.0.attn.proj.weight");
      const Tensor first = detached::clone(narrow(w, 1, 0, 6));
      copy_into(detached::narrow(w, 1, 0, 6), detached::narrow(w, 1, 6, 6));
      copy_into(detached::narrow(w, 1, 6, 6), first);
    }
    split.load(from);
    const int64_t before = g.bytes_sent();
    backward(training::cross_entropy_of(part, rank_batch(options.seed, kSteps)));
    const int64_t sent = g.bytes_sent() - before;
    fault == Fault::clipped_apart ? train_clipped_apart(part, options) : train(part, &split, options);
    const TensorMap whole = split.whole();
    if (g.rank() == 0) m = {off(whole, end), sent};
  });
  return m;
}

}  // namespace

ExperimentResult tensor_parallel(const ExperimentOptions& options) {
  ExperimentResult r;
  Margin margin(kSame, kDifferent);
  reports::TextTable table{
      .heading = "A GPT on four ranks",
      .columns = {"form", "ranks share", "bytes a row and branch", "derived", "weights"},
      .caption =
          "Bytes that a rank sends in forward and backward, in f64; weights: largest deviation from the weights of one "
          "process after 10 steps of AdamW, relative to the largest weight."};
  reports::DotPlot plot{.title = "Weights on four ranks against weights in one process",
                        .axis = "deviation relative to the largest weight",
                        .low = 1e-17,
                        .high = 10,
                        .zones = {{"good", "the same", 1e-17, kSame}, {"bad", "another training", kDifferent, 10}}};
  bool as_derived = true;
  for (Form form : streams::layer_norm_forms()) {
    options.go_on();
    nn::Gpt whole = made(rank_gpt(kWidth, kDepth), form, options.seed);
    const TensorMap start = nn::clone(whole.state_dict());
    train(whole, nullptr, options);
    const TensorMap end = nn::clone(whole.state_dict());
    plot.rows.push_back({streams::name_of(form), {}});
    const auto row = [&](const char* what, bool rows, Fault fault) {
      const Measured m = measured(form, rows, fault, start, end, options);
      const bool same = fault == Fault::none;
      const int64_t width = streams::Stream(form, kWidth).stored_width(), branches = 2 * kDepth;
      const double a_row = static_cast<double>(m.bytes) / static_cast<double>(branches * kRankRows * kRankTime);
      const double derived = 2. * 2 * (kRanks - 1) / kRanks * static_cast<double>(8 * width);
      // In addition the gradients of gains and biases are summed, a few vectors per block. With shared rows, the rows
      // are cut once and gathered once.
      const bool near = a_row >= derived && a_row < 1.6 * derived;
      as_derived = as_derived && (!same || near);
      table.rows.push_back({{same && !rows ? streams::name_of(form) : ""},
                            {what},
                            same
                                ? reports::printed_cell("%.0f", a_row, near ? reports::Tone::plain : reports::Tone::bad)
                                : reports::TextCell{"-"},
                            same ? reports::printed_cell("%.0f", derived) : reports::TextCell{"-"},
                            reports::number_cell(m.off, margin.take(m.off, same))});
      plot.rows.back().dots.push_back({same ? "rms" : "negative", text(what, ": ", scientific(m.off)), m.off, same});
    };
    row("heads and hidden entries", false, Fault::none);
    row("these and rows", true, Fault::none);
    row("clipped on each rank by its own norm", false, Fault::clipped_apart);
    row("two heads of a rank exchanged", false, Fault::another_part);
  }
  r.tables.push_back(std::move(table));
  r.figures.push_back(
      {.name = "weights",
       .heading = "One training, on one rank and on four",
       .panels = {{.legend = {{"dot solid rms", "tensor parallel"}, {"dot solid negative", "with a mistake"}},
                   .drawing = std::move(plot)}},
       .caption = "Filled dots have to be on the left, hollow ones on the right."});
  r.confirmed = as_derived && margin.kept();
  r.measured = text("Weights deviate by at most ", scientific(margin.largest_same()), ", with a mistake by at least ",
                    scientific(margin.smallest_different()), "; the bytes sent are ", as_derived ? "" : "not ",
                    "as derived, plus the gradients of vectors, and one scatter and one gather of rows.");
  r.refuted = text(margin.refuted(), ", or fewer bytes than derived, or 1.6 times the derived number");
  return r;
}

}  // namespace isonorm::papers
