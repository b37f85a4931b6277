// Rows of norms over positions: group norm and batch norm.
#include "autograd/fused/group_norm.h"

#include <algorithm>
#include <cmath>

#include "tests/op_cases/groups.h"
#include "tests/support/norm_reference.h"

namespace isonorm::test {
namespace {

// x [batch, ..., channels] as batch x positions x channels, divided into sets that are normalized together.
struct Sets {
  int64_t batch, places, channels;
  int64_t groups = 0;  // groups of channels within an example; 0: each channel over the batch is a set

  explicit Sets(const Dims& shape, int64_t groups = 0)
      : batch(shape[0]), places(1), channels(shape[shape.rank - 1]), groups(groups) {
    for (int d = 1; d < shape.rank - 1; ++d) places *= shape[d];
  }
  size_t set(int64_t n, int64_t c) const {
    return static_cast<size_t>(groups ? n * groups + c * groups / channels : c);
  }
  // Calls f(set, position, channel, entry) for all entries.
  template <class F> void each(F f) const {
    size_t i = 0;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t place = 0; place < places; ++place)
        for (int64_t c = 0; c < channels; ++c) f(set(n, c), place, c, i++);
  }
};

// The mean that is subtracted from a set, and the mean square whose root divides it.
struct Statistic {
  long double mean = 0, square = 0;
  long double root(const GroupNormOptions& o) const {
    return o.eps_outside ? std::sqrt(square) + o.eps : std::sqrt(square + o.eps);
  }
};

// One pass for the means, one for the mean squares.
std::vector<Statistic> statistics_of(const Array& x, const Sets& s, const GroupNormOptions& o) {
  const int64_t taken = taken_entries(o.p, s.places);
  std::vector<Statistic> all(static_cast<size_t>(s.groups ? s.batch * s.groups : s.channels));
  for (const bool squares : {false, true}) {
    std::vector<long double> sums(all.size()), counts(all.size());
    s.each([&](size_t set, int64_t place, int64_t, size_t i) {
      if (place >= taken) return;
      const long double v = x.v[i] - all[set].mean;
      sums[set] += squares ? v * v : v, ++counts[set];
    });
    for (size_t k = 0; k < all.size(); ++k)
      (squares ? all[k].square : all[k].mean) = squares || o.kind == NormKind::layer ? sums[k] / counts[k] : 0;
  }
  return all;
}

Array normed(const Array& x, const Array* gain, const Array* bias, const Sets& s, const GroupNormOptions& o) {
  const std::vector<Statistic> all = statistics_of(x, s, o);
  Array y(x.shape);
  s.each([&](size_t set, int64_t, int64_t c, size_t i) {
    long double v = (x.v[i] - all[set].mean) / all[set].root(o);
    if (gain) v *= gain->v[c];
    if (bias) v += bias->v[c];
    y.v[i] = static_cast<double>(v);
  });
  return y;
}

Arrays draw_inputs(Draw& draw, const Dims& shape, const Affine& a, double mean, double deviation) {
  Arrays in{draw.normal(shape, mean, deviation)};
  a.draw(draw, shape, in);
  return in;
}

// Size of the terms of a gradient, for the set with the smallest spread: gain (1 + |x| / root) / root.
double steepness(const Array& x, const Sets& sets, const GroupNormOptions& o) {
  double largest = 0, worst = 0;
  for (const double v : x.v) largest = std::max(largest, std::abs(v));
  if (x.v.empty()) return 0;
  for (const Statistic& s : statistics_of(x, sets, o)) {
    const auto root = static_cast<double>(s.root(o));
    worst = std::max(worst, 2 * (1 + largest / root) / root);
  }
  return worst;
}

std::string label_of(int64_t groups, const GroupNormOptions& o, const Affine& a) {
  return text(groups, " groups ", name_of(o.kind), " eps ", o.eps, o.eps_outside ? " outside" : "",
              o.p == 1 ? "" : text(" p ", o.p), a.label);
}

// run(x, gain, bias) is the norm under test.
template <class Run>
Sample& add_normed(OpCase& op, const std::string& label, const Arrays& in, const Affine& affine, const Sets& sets,
                   const GroupNormOptions& o, Run run) {
  Sample& s = op.add(
      label, in, [=](const Tensors& t) { return run(t[0], affine.gain_of(t, 1), affine.bias_of(t, 1)); },
      [=](const Arrays& a) { return normed(a[0], affine.gain_of(a, 1), affine.bias_of(a, 1), sets, o); });
  s.length = static_cast<double>(sets.places * (sets.groups ? sets.channels / sets.groups : sets.batch));
  s.slope = steepness(in[0], sets, o);
  return s;
}

OpCase group_row() {
  OpCase op = row_of("Fused", "group_norm", "(x, int64_t groups, gain = {}, bias = {}, GroupNormOptions options = {})",
                     "(x - mean) / sqrt(var + eps) gain + bias or x / rms gain + bias, by example and group of "
                     "channels",
                     tolerance::composite);
  op.stretch_rows = false, op.checks = 100, op.parameters = 1;
  const auto add = [&](const Dims& shape, int64_t groups, const Affine& affine, const GroupNormOptions& o,
                       double mean = 0, double deviation = 1) -> Sample& {
    return add_normed(
        op, label_of(groups, o, affine) + text(" mean ", mean, " deviation ", deviation),
        draw_inputs(op.draw, shape, affine, mean, deviation), affine, Sets(shape, groups), o,
        [=](const Tensor& x, const Tensor& gain, const Tensor& bias) { return group_norm(x, groups, gain, bias, o); });
  };
  const GroupNormOptions kinds[] = {{.eps = 0.1},
                                    {.kind = NormKind::rms, .eps = 0.1},
                                    {.kind = NormKind::rms, .eps = 0.2, .eps_outside = true},
                                    {.eps = 0.2, .eps_outside = true},
                                    {.kind = NormKind::rms, .eps = 0.1, .p = 0.125}};
  const std::pair<Dims, int64_t> shapes[] = {{{2, 6}, 1},          {{3, 6}, 3},        {{2, 3, 4, 4}, 2},
                                             {{1, 5, 3, 6}, 6},    {{2, 9, 3}, 1},     {{2, 4, 4, 17}, 17},
                                             {{3, 2, 2, 2, 8}, 4}, {{1, 4, 3, 33}, 3}, {{2, 5, 5, 1}, 1},
                                             {{0, 3, 3, 4}, 2},    {{2, 0, 3, 4}, 2}};
  for (const auto& [shape, groups] : shapes)
    for (const GroupNormOptions& o : kinds)
      for (const Affine& affine : kAffine)
        add(shape, groups, affine, o).composed = o.p == 1 || !is_empty(shape);  // else a share of no positions
  for (const GroupNormOptions& o : {GroupNormOptions{}, GroupNormOptions{.kind = NormKind::rms}})
    for (const auto& [mean, deviation] : {std::pair{3.0, 1.0}, {1e4, 1.0}, {0.0, 1e-2}})
      add({2, 4, 5, 6}, 3, kAffine[2], o, mean, deviation).composed = false;
  add({2, 23, 31, 12}, 12, kAffine[2], {}).large = true;  // several blocks of rows
  add({2, 23, 31, 12}, 4, kAffine[2], {.kind = NormKind::rms, .p = 0.4}).large = true;
  add({3, 19, 17, 64}, 8, kAffine[0], {}).large = true;
  op.refuse({"[4]", "[examples, ..., channels]"}, [] { group_norm(reals({4}), 2); });
  op.refuse({"3 groups", "4 channels"}, [] { group_norm(reals({2, 4}), 3); });
  op.refuse({"0 groups"}, [] { group_norm(reals({2, 4}), 0); });
  op.refuse({"gain [2]", "[2, 4]"}, [] { group_norm(reals({2, 4}), 2, reals({2})); });
  op.refuse({"bias [2, 4]"}, [] { group_norm(reals({2, 4}), 2, {}, reals({2, 4})); });
  op.refuse({"gain is f64", "f32"}, [] { group_norm(reals({2, 4}), 2, reals({4}, DType::f64)); });
  op.refuse({"crms_norm"}, [] { group_norm(reals({2, 4}), 2, {}, {}, {.kind = NormKind::crms}); });
  op.refuse({"eps is -1"}, [] { group_norm(reals({2, 4}), 2, {}, {}, {.eps = -1}); });
  op.refuse({"p is 0.5", "only rms_norm"}, [] { group_norm(reals({2, 4}), 2, {}, {}, {.p = 0.5}); });
  op.refuse({"p is 1.5", "(0, 1]"}, [] { group_norm(reals({2, 4}), 2, {}, {}, {.kind = NormKind::rms, .p = 1.5}); });
  op.refuse({"i64"}, [] { group_norm(integers({2, 4}), 2); });
  return op;
}

OpCase batch_row() {
  OpCase op = row_of(
      "Fused", "batch_norm", "(x, gain = {}, bias = {}, double eps = 1e-5, BatchStatistics* statistics = nullptr)",
      "(x - mean) / sqrt(var + eps) gain + bias, by channel over the batch and all places", tolerance::composite);
  op.stretch_rows = false, op.checks = 40, op.parameters = 1;
  const auto add = [&](const Dims& shape, const Affine& affine, double eps, double mean = 0) -> Sample& {
    const GroupNormOptions o{.eps = eps};
    return add_normed(op, label_of(1, o, affine) + text(" mean ", mean), draw_inputs(op.draw, shape, affine, mean, 1),
                      affine, Sets(shape), o, [=](const Tensor& x, const Tensor& gain, const Tensor& bias) {
                        return batch_norm(x, gain, bias, eps);
                      });
  };
  for (const Dims& shape : {Dims{5, 3}, Dims{1, 4}, Dims{3, 2, 4, 5}, Dims{2, 3, 3, 1}, Dims{4, 7, 17},
                            Dims{2, 1, 1, 9}, Dims{0, 3}, Dims{2, 0, 4}})
    for (const double eps : {0.1, 0.3})
      for (const Affine& affine : kAffine)
        if (Sample& s = add(shape, affine, eps); shape[0] == 1)  // a single number: terms c / sqrt(eps) cancel
          s.composed = false, s.absolute = 1e-14;
  for (const double mean : {3.0, 1e4}) add({7, 3, 6}, kAffine[2], 1e-5, mean).composed = false;
  add({37, 8, 9, 24}, kAffine[2], 1e-5).large = true;
  add({700, 33}, kAffine[0], 1e-5).large = true;
  op.refuse({"[4]", "[examples, ..., channels]"}, [] { batch_norm(reals({4})); });
  op.refuse({"gain [2]", "[2, 4]"}, [] { batch_norm(reals({2, 4}), reals({2})); });
  op.refuse({"eps is -1"}, [] { batch_norm(reals({2, 4}), {}, {}, -1); });
  op.refuse({"i64"}, [] { batch_norm(integers({2, 4})); });
  return op;
}

}  // namespace

std::vector<OpCase> group_norm_cases() { return {group_row(), batch_row()}; }

}  // namespace isonorm::test
