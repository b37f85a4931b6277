// Norms of rows whose entries are sharded over ranks: the sums over ranks that each form needs. A row has d entries; x
// are this rank's. [...] is one all_reduce of sums over all ranks, g the gradient of the output, and r the root of mean
// square + eps.
//
// layer_norm: m = [sum x] / d, c = x - m, r from [sum c^2].
//    y = c / r, dx = (g - A / d - y B / d) / r with A, B = [sum g, sum g y]
// layer_norm in one reduction: [sum x, sum x^2] = S, Q, r from Q / d - (S / d)^2, which cancels if the mean is large.
// rms_norm: r from [sum x^2].
//    y = x / r, dx = (g - y B / d) / r with B = [sum g y]
// crms_norm: S, Q = [sum x, sum x^2], r from Q + S^2. The stored entries x are all but one, which is -S. The result is
// a sum of squares, so nothing cancels.
//    y = x / r, dx = (g - (y + S / r) B / d) / r
// crms_isometric: as rms_norm, with d - 1 entries.
//
// The derivatives follow from core/formulas and autograd/ops/norm.h. If ranks share the rows instead (sequence
// parallelism, 2205.05198), every rank has whole rows and no form needs a sum over ranks.
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/margin.h"

namespace isonorm::papers {
namespace {

using distributed::Group;

constexpr int kRanks = 4;
constexpr int64_t kRows = 64, kStored = 96;
constexpr double kEps = 1e-5;
constexpr double kSame = 1e-3, kDifferent = 1e-2;  // in f32, for rows whose mean is 1000 standard deviations
constexpr double kRounding = 1e-12;                // in f64

// Sums over all entries of each row, in one all_reduce. Counts them.
struct Sums {
  Group& group;
  int64_t reductions = 0, numbers = 0;  // all_reduces for all rows; numbers per row

  std::vector<Tensor> operator()(const std::vector<Tensor>& terms) {
    std::vector<Tensor> sums;
    for (const Tensor& t : terms) sums.push_back(t.sum({-1}, true));
    group.all_reduce(sums);
    ++reductions, numbers += std::ssize(terms);
    return sums;
  }
};

struct Norm {
  const char* name;
  int64_t width;  // d
  Tensor (*whole)(const Tensor& x, const Tensor& gain, const Tensor& bias, NormOptions options);
  // Forward of this rank's x. Writes y and the values that the backward needs: root r, and S / r as `shift`
  // (crms_norm).
  void (*forward)(Sums& sums, double d, const Tensor& x, Tensor& y, Tensor& root, Tensor& shift);
  bool two;         // the backward also needs [sum g]
  bool cancels;     // loses digits if the mean is large
  int64_t numbers;  // numbers summed per row, forward and backward
};

Tensor root_of(const Tensor& square) { return sqrt(square + kEps); }

const std::vector<Norm>& norms() {
  constexpr auto layer = [](Sums& sums, double d, const Tensor& x, Tensor& y, Tensor& root, Tensor&) {
    const Tensor centred = x - sums({x})[0] / d;
    root = root_of(sums({square(centred)})[0] / d), y = centred / root;
  };
  constexpr auto layer_in_one = [](Sums& sums, double d, const Tensor& x, Tensor& y, Tensor& root, Tensor&) {
    const std::vector<Tensor> s = sums({x, square(x)});
    const Tensor mean = s[0] / d;
    root = root_of(s[1] / d - square(mean)), y = (x - mean) / root;
  };
  constexpr auto rms = [](Sums& sums, double d, const Tensor& x, Tensor& y, Tensor& root, Tensor&) {
    root = root_of(sums({square(x)})[0] / d), y = x / root;
  };
  constexpr auto crms = [](Sums& sums, double d, const Tensor& x, Tensor& y, Tensor& root, Tensor& shift) {
    const std::vector<Tensor> s = sums({x, square(x)});
    root = root_of((s[1] + square(s[0])) / d), y = x / root, shift = s[0] / root;
  };
  static const std::vector<Norm> all = {
      {"layer_norm", kStored, layer_norm, layer, true, false, 4},
      {"layer_norm, forward in one reduction", kStored, layer_norm, layer_in_one, true, true, 4},
      {"rms_norm", kStored, rms_norm, rms, false, false, 2},
      {"crms_norm", kStored + 1, crms_norm, crms, false, false, 3},
      {"crms_isometric", kStored + 1, crms_isometric_norm, rms, false, false, 2}};
  return all;
}

struct Measured {
  double off = 0;  // deviation of y and dx, relative to the largest entry
  int64_t forward = 0, backward = 0, numbers = 0, bytes = 0;
};

double largest(const Tensor& x) { return amax(abs(detach(x))).item(); }

Measured measured(const Norm& norm, const Tensor& x, const Tensor& g) {
  const Tensor leaf = require_grad(clone(x.to(DType::f64)));
  const Tensor whole = norm.whole(leaf, {}, {}, {.eps = kEps});
  backward(sum(whole * g.to(DType::f64)));
  std::vector<Tensor> y(kRanks), dx(kRanks);
  Measured m;
  distributed::run_ranks(kRanks, [&](Group& group) {
    const auto own = [&](const Tensor& all) {
      return narrow(all, 1, group.rank() * kStored / kRanks, kStored / kRanks).contiguous();
    };
    const auto r = static_cast<size_t>(group.rank());
    const auto d = static_cast<double>(norm.width);
    Sums sums{group};
    Tensor root, shift;
    norm.forward(sums, d, own(x), y[r], root, shift);
    const int64_t forward = sums.reductions;
    const Tensor up = own(g), upy = up * y[r];
    const std::vector<Tensor> s = norm.two ? sums({upy, up}) : sums({upy});
    const Tensor along = shift.defined() ? y[r] + shift : y[r];
    dx[r] = ((norm.two ? up - s[1] / d : up) - along * s[0] / d) / root;
    if (r == 0) m = {0, forward, sums.reductions - forward, sums.numbers, group.bytes_sent()};
  });
  const Tensor all_y = cat(y, 1).to(DType::f64), all_dx = cat(dx, 1).to(DType::f64);
  m.off = std::max(largest(all_y - whole) / largest(whole), largest(all_dx - leaf.grad()) / largest(leaf.grad()));
  return m;
}

}  // namespace

ExperimentResult sharded_norms(const ExperimentOptions& options) {
  Generator random{options.seed, 0};
  const Tensor x = randn({kRows, kStored}, {DType::f64}, random), g = randn({kRows, kStored}, {DType::f64}, random);
  ExperimentResult r;
  Margin margin(kSame, kDifferent);
  reports::TextTable table{
      .heading = text("Norms of rows that ", kRanks, " ranks hold a part of"),
      .columns = {"norm", "reductions forward", "backward", "numbers a row", "bytes a row", "off in f64", "off in f32"},
      .caption = text("A reduction is one all_reduce for all rows; numbers and bytes per row are counted by the group "
                      "in both directions (each rank sends 2 (N - 1) / N times the numbers that it adds). Off: "
                      "deviation of outputs and gradients, relative to the largest, from the same norm of whole rows "
                      "in f64; in f32 the rows of layer_norm have a mean of 1000 deviations.")};
  reports::DotPlot plot{.title = "Deviation from the same norm of whole rows",
                        .axis = "relative to the largest entry",
                        .low = 1e-17,
                        .high = 10,
                        .zones = {{"good", "rounding", 1e-17, kSame}, {"bad", "cancelled", kDifferent, 10}}};
  bool as_derived = true;
  for (const Norm& norm : norms()) {
    const Measured m = measured(norm, x, g);
    const bool layer = norm.two;
    const Measured single = measured(norm, (layer ? x + 1000 : x).to(DType::f32), g.to(DType::f32));
    const int64_t bytes = 2 * (kRanks - 1) * norm.numbers * int64_t{sizeof(double)} / kRanks;
    as_derived = as_derived && m.numbers == norm.numbers && m.bytes == bytes * kRows && m.off < kRounding;
    plot.rows.push_back({norm.name,
                         {{"rms", text("f64: ", scientific(m.off)), m.off, true},
                          {"negative", text("f32: ", scientific(single.off)), single.off, false}}});
    table.rows.push_back({{norm.name},
                          reports::count_cell(m.forward),
                          reports::count_cell(m.backward),
                          reports::count_cell(m.numbers),
                          reports::count_cell(m.bytes / kRows),
                          reports::number_cell(m.off, m.off < kRounding ? reports::Tone::good : reports::Tone::bad),
                          reports::number_cell(single.off, margin.take(single.off, !norm.cancels))});
  }
  r.tables.push_back(std::move(table));
  r.figures.push_back({.name = "deviations",
                       .heading = "Deviations of norms that are summed over ranks",
                       .panels = {{.legend = {{"dot solid rms", "f64"},
                                              {"dot solid negative", "f32, layer_norm with a mean of 1000 deviations"}},
                                   .drawing = std::move(plot)}},
                       .caption = "LayerNorm in one reduction subtracts two numbers of the size of the mean squared."});
  r.confirmed = as_derived && margin.kept();
  r.measured = text("In f32 layer_norm in one reduction is off by ", scientific(margin.smallest_different()),
                    ", every other norm by at most ", scientific(margin.largest_same()), ".");
  r.refuted = text(margin.refuted(), ", or a norm in f64 that is off by ", scientific(kRounding),
                   ", or that sums other numbers");
  return r;
}

}  // namespace isonorm::papers
