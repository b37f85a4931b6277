// Rows of the pointwise part of a recurrent step.
#include "autograd/fused/recurrent.h"

#include <cmath>

#include "autograd/ops/shape.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

long double sigmoid_of(long double x) { return 1 / (1 + std::exp(-x)); }

// Entry j of gate `k` in a row of gates.
long double gate(const Array& x, const Dims& at, int64_t hidden, int64_t k) {
  return x.at({at[0], k * hidden + at[1]});
}

Array gru_of(const Arrays& a) {
  const int64_t n = a[2].shape[1];
  return tabulate(a[2].shape, [&](const Dims& at) {
    const long double r = sigmoid_of(gate(a[0], at, n, 0) + gate(a[1], at, n, 0)),
                      z = sigmoid_of(gate(a[0], at, n, 1) + gate(a[1], at, n, 1)),
                      fresh = std::tanh(gate(a[0], at, n, 2) + r * gate(a[1], at, n, 2));
    return static_cast<double>((1 - z) * fresh + z * a[2].at(at));
  });
}

Arrays lstm_of(const Arrays& a, LstmOutput form) {
  const int64_t n = a[2].shape[1];
  const auto sum = [&](const Dims& at, int64_t k) { return gate(a[0], at, n, k) + gate(a[1], at, n, k); };
  const auto cell = [&](const Dims& at) {
    return sigmoid_of(sum(at, 1)) * a[2].at(at) + sigmoid_of(sum(at, 0)) * std::tanh(sum(at, 2));
  };
  return {tabulate(a[2].shape,
                   [&](const Dims& at) {
                     const long double o = sigmoid_of(sum(at, 3));
                     return static_cast<double>(form == LstmOutput::gate ? o : o * std::tanh(cell(at)));
                   }),
          tabulate(a[2].shape, [&](const Dims& at) { return static_cast<double>(cell(at)); })};
}

const char* label_of(LstmOutput form) { return form == LstmOutput::gate ? "gate" : "hidden"; }
Tensors list_of(const LstmStep& s) { return {s.output, s.cell}; }

struct Sizes {
  int64_t batch, hidden;
};
// Sizes around the lanes of vectors; 1 and 0.
constexpr Sizes kSizes[] = {{1, 1},  {2, 1}, {1, 3},  {3, 2}, {2, 5},  {4, 4},  {3, 8},  {5, 7}, {2, 16}, {7, 9},
                            {1, 33}, {6, 6}, {3, 17}, {9, 3}, {2, 31}, {8, 12}, {11, 5}, {0, 3}, {3, 0}};

// mean: of a and u; far from 0 all gates are saturated.
Arrays draw_step(Draw& draw, Sizes s, int64_t parts, double mean = 0) {
  const double spread = mean == 0 ? 1 : 0.2;
  return {draw.normal({s.batch, parts * s.hidden}, mean, spread),
          draw.normal({s.batch, parts * s.hidden}, mean, spread), draw.normal({s.batch, s.hidden})};
}

// f(a, u, state) is refused if the shapes do not fit `parts` gates.
template <class F> void add_refusals(OpCase& op, int64_t parts, F f) {
  const std::string needs = text("needs [2, ", 3 * parts, "]");
  op.refuse({"a has shape [2, 5]", "[2, 3]", needs}, [=] { f(reals({2, 5}), reals({2, 3 * parts}), reals({2, 3})); });
  op.refuse({"u has shape [1, ", needs}, [=] { f(reals({2, 3 * parts}), reals({1, 3 * parts}), reals({2, 3})); });
  op.refuse({"a has shape [6]"}, [=] { f(reals({6}), reals({2, 3 * parts}), reals({2, 3})); });
  op.refuse({"state has shape [3]", "[batch, hidden]"}, [=] { f(reals({3 * parts}), reals({3 * parts}), reals({3})); });
  op.refuse({"u is f64", "f32"}, [=] { f(reals({2, 3 * parts}), reals({2, 3 * parts}, DType::f64), reals({2, 3})); });
  op.refuse({"i64"}, [=] { f(integers({2, 3 * parts}), integers({2, 3 * parts}), integers({2, 3})); });
}

}  // namespace

std::vector<OpCase> recurrent_cases() {
  OpCase gru =
      row_of("Fused", "gru_step", "(a, u, h)",
             "n + z (h - n), r, z = sigmoid(a + u), n = tanh(a_n + r u_n); rows [r, z, n]", tolerance::composite);
  OpCase lstm = row_of("Fused", "lstm_step", "(a, u, c, LstmOutput form = LstmOutput::hidden)",
                       "c' = f c + i g, o tanh(c'); i, f, o = sigmoid(a + u), g = tanh(a_g + u_g); rows [i, f, g, o]",
                       tolerance::composite);
  Draw draw("recurrent");
  const auto add = [&](Sizes s, double mean = 0) {
    const auto complete = [&](Sample& sample) {
      sample.large = s.hidden == 300;
      // The difference between 1 and a gate near 1 has the rounding error of 1. It is multiplied by a cotangent up to
      // 1.5 and a state up to 3.
      sample.slope = mean == 0 ? 0 : 4.5 / kGradientConstant;
    };
    complete(gru.add(text("mean ", mean), draw_step(draw, s, 3, mean), gru_step, gru_of));
    for (LstmOutput form : {LstmOutput::hidden, LstmOutput::gate})
      complete(lstm.add(
          text(label_of(form), " mean ", mean), draw_step(draw, s, 4, mean),
          [form](const Tensors& t) { return list_of(lstm_step(t[0], t[1], t[2], form)); },
          [form](const Arrays& a) { return lstm_of(a, form); }));
  };
  for (const Sizes& s : kSizes) add(s);
  for (const Sizes& s : {Sizes{4, 11}, Sizes{12, 2}, Sizes{2, 7}, Sizes{5, 15}}) add(s);
  for (double mean : {-2, 3}) add({2, 9}, mean);
  add({70, 300});  // more than the CPU processes at a time and than a block on a device has threads
  // The input part is one step of a sequence of three, as in a layer, so its rows are not contiguous; u's rows are.
  const auto add_apart = [&](OpCase& op, Sizes s, int64_t parts, auto run, auto reference) {
    Arrays in = draw_step(draw, s, parts);
    in[0] = draw.normal({s.batch, 3, parts * s.hidden});
    op.add(
        "rows apart", in,
        [run](const Tensors& t) {
          return run({select(t[0], 1, 1), t[1], t[2]});
        },
        [reference](const Arrays& a) {
          const Array step = tabulate(a[1].shape, [&](const Dims& at) { return a[0].at({at[0], 1, at[1]}); });
          return reference({step, a[1], a[2]});
        });
  };
  for (const Sizes& s : {Sizes{4, 3}, Sizes{2, 9}, Sizes{3, 16}}) {
    add_apart(
        gru, s, 3, [](const Tensors& t) { return gru_step(t[0], t[1], t[2]); }, gru_of);
    add_apart(
        lstm, s, 4, [](const Tensors& t) { return list_of(lstm_step(t[0], t[1], t[2])); },
        [](const Arrays& a) { return lstm_of(a, LstmOutput::hidden); });
  }
  add_refusals(gru, 3, [](const Tensor& a, const Tensor& u, const Tensor& h) { gru_step(a, u, h); });
  add_refusals(lstm, 4, [](const Tensor& a, const Tensor& u, const Tensor& c) { lstm_step(a, u, c); });
  return {gru, lstm};
}

}  // namespace isonorm::test
