// Rows of softmax and log_softmax.
#include "autograd/ops/loss.h"

#include <algorithm>
#include <cmath>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

// exp(x - top) / sum, or its logarithm, for the entries of every row along dim.
Array by_row(const Array& x, int dim, bool logarithm) {
  const int d = dim < 0 ? dim + x.shape.rank : dim;
  Array y(x.shape);
  for_each_index(x.shape, [&](Dims at) {
    if (at[d] > 0) return;  // a row is computed at its first position
    long double top = -HUGE_VALL, sum = 0;
    bool nan = false;
    for (at[d] = 0; at[d] < x.shape[d]; ++at[d]) {
      nan |= std::isnan(x.at(at));
      top = std::max<long double>(top, x.at(at));
    }
    for (at[d] = 0; at[d] < x.shape[d]; ++at[d]) sum += std::exp(x.at(at) - top);
    for (at[d] = 0; at[d] < x.shape[d]; ++at[d]) {
      const long double shifted = x.at(at) - top, value = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
      y.at(at) = nan || std::isinf(top) ? std::nan("") : static_cast<double>(value);
    }
  });
  return y;
}

OpCase row(std::string name, std::string formula, Tensor (*call)(const Tensor&, int), bool logarithm) {
  OpCase op = row_of("Softmax", name, "(x, int dim = -1)", std::move(formula), tolerance::elementary);
  op.checks = 50;
  const auto add = [&](const std::string& label, const Array& x, int dim) -> Sample& {
    Sample& s = op.add(
        text("dim ", dim, label), {x}, [=](const Tensors& t) { return call(t[0], dim); },
        [=](const Arrays& a) { return by_row(a[0], dim, logarithm); });
    s.length = std::max(1.0, static_cast<double>(x.shape[dim < 0 ? dim + x.shape.rank : dim]));
    // exp to 1 ulp, of an argument rounded at |x| <= 30; a sum; a division.
    s.tolerance = {32 / std::sqrt(s.length) + 1, logarithm ? Scale::unit : Scale::entry, true};
    s.slope = 2;  // y (g - sum of y g): the terms are as large as the cotangents
    return s;
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d) add("", op.draw.normal(shape), d % 2 ? d : d - shape.rank);
  for (double mean : {0.0, 1e4, -800.0})
    for (double deviation : {0.1, 10.0})
      add(text(" mean ", mean, " deviation ", deviation), op.draw.normal({3, 9}, mean, deviation), -1);
  for (int64_t n : {1, 2, 8, 10, 15, 16, 40, 63, 64, 65, 127, 200, 1000})
    add(" mean 5 deviation 4", op.draw.normal({3, n}, 5, 4), -1).gradient = false;
  Array special({5, 4});
  special.v = {-HUGE_VAL, 0, 1,    -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, NAN, 0,
               1,         2, 1000, -1000,     0,         1,         -HUGE_VAL, 1e4,       1e4, -1e4};
  add(" special values", special, 1).gradient = false;
  add("", op.draw.normal(kLarge), -1).large = true;
  add("", op.draw.normal(kLarge), 0).large = true;
  add("", op.draw.normal(kLarge), 1).large = true;
  op.refuse({"dimension 2", "rank 2"}, [=] { call(reals({2, 3}), 2); });
  op.refuse({"rank 0"}, [=] { call(reals({}), -1); });
  op.refuse({"i64"}, [=] { call(integers({2}), -1); });
  return op;
}

}  // namespace

std::vector<OpCase> softmax_cases() {
  return {row("softmax", "e^x / sum of e^x along dim", isonorm::softmax, false),
          row("log_softmax", "x - ln sum of e^x along dim", isonorm::log_softmax, true)};
}

}  // namespace isonorm::test
