// Rows of functions that make tensors with given values.
#include "autograd/ops/create.h"

#include <cmath>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

constexpr DType kAll[] = {DType::f64, DType::f32, DType::bf16, DType::i64, DType::u8};

OpCase row(std::string name, std::string parameters, std::string formula) {
  OpCase op = row_of("New tensors", std::move(name), parameters, std::move(formula));
  op.differentiable = false;
  op.dtypes = {DType::f64};
  return op;
}

Array of(Array a, DType dtype) {
  a.dtype = dtype;
  return a;
}

OpCase filled_row(std::string name, std::string parameters, std::string formula, double value,
                  std::function<Tensor(const Dims&, TensorOptions)> call) {
  OpCase op = row(name, parameters, formula);
  for (const Dims& shape : shapes_and_large())
    for (DType dtype : kAll)
      op.add(
            text(shape, ' ', dtype), {}, [=](const Tensors&) { return call(shape, options_of(dtype)); },
            [=](const Arrays&) { return of(Array(shape, Kind::real, value), dtype); })
          .large = shape == kLarge;
  op.refuse({"-2", "[3, -2]"}, [=] { call({3, -2}, {}); });
  return op;
}

// An integer dtype accepts only values that it can represent.
OpCase refusing_bytes(OpCase op, std::function<Tensor()> call) {
  op.refuses = true;
  op.refuse({"300", "u8"}, std::move(call));
  return op;
}

OpCase like_row(std::string name, std::string parameters, std::string formula, double value,
                std::function<Tensor(const Tensor&)> call) {
  OpCase op = row(name, parameters, formula);
  op.dtypes = {DType::f64, DType::f32, DType::bf16};
  op.refuses = false;
  for (const Dims& shape : shapes_and_large())
    op.add("", {op.draw.normal(shape)}, call, [=](const Array& x) { return Array(x.shape, Kind::real, value); }).large =
        shape == kLarge;
  return op;
}

// `count` values, rounded to the dtype as double code would.
Array sequence(int64_t count, DType dtype, const std::function<double(int64_t)>& value) {
  return of(
      tabulate({count}, [&](const Dims& i) { return is_floating(dtype) ? value(i[0]) : std::trunc(value(i[0])); }),
      dtype);
}

OpCase arange_row() {
  OpCase op = row("arange", "(double begin, double end, double step = 1, TensorOptions options = {})",
                  "begin + i step, up to and without end");
  struct Range {
    double begin, end, step;
  };
  for (const Range& r :
       {Range{0, 5, 1}, Range{1, 2, 0.25}, Range{3, -2, -1}, Range{0, 1, 0.3}, Range{2, 2, 1}, Range{0, 30000, 0.5}})
    for (DType dtype : {DType::f64, DType::f32, DType::i64}) {
      const int64_t n = static_cast<int64_t>(std::ceil((r.end - r.begin) / r.step));
      op.add(
            text('[', r.begin, ", ", r.end, ") step ", r.step, ' ', dtype), {},
            [=](const Tensors&) { return arange(r.begin, r.end, r.step, options_of(dtype)); },
            [=](const Arrays&) {
              return sequence(n, dtype, [=](int64_t i) { return r.begin + static_cast<double>(i) * r.step; });
            })
          .large = n > 20000;
    }
  op.refuse({"0"}, [] { arange(0.0, 1.0, 0.0); });
  op.refuse({"-1"}, [] { arange(0.0, 1.0, -1.0); });
  op.refuse({"inf"}, [] { arange(0.0, HUGE_VAL, 1.0); });
  op.refuse({"299", "u8"}, [] { arange(0.0, 300.0, 1.0, {DType::u8}); });
  op.refuse({"-1 does not fit u8"}, [] { arange(2, -2, -1, {DType::u8}); });
  return op;
}

OpCase arange_count_row() {
  OpCase op = row("arange", "(int64_t n, TensorOptions options = {.dtype = DType::i64})", "0, 1, ... n - 1");
  for (int64_t n : {0, 1, 7, 50000})
    for (DType dtype : {DType::i64, DType::f32})
      op.add(
            text(n, ' ', dtype), {}, [=](const Tensors&) { return arange(n, options_of(dtype)); },
            [=](const Arrays&) { return sequence(n, dtype, [](int64_t i) { return static_cast<double>(i); }); })
          .large = n == 50000;
  op.refuse({"-1"}, [] { arange(int64_t{-1}); });
  return op;
}

OpCase linspace_row() {
  OpCase op = row("linspace", "(double begin, double end, int64_t count, TensorOptions options = {})",
                  "count values from begin to end, both included");
  op.tolerance = {2, Scale::output};
  for (const auto& ends : {std::pair{0.0, 1.0}, std::pair{3.0, -2.0}, std::pair{5.0, 5.0}})
    for (int64_t n : {0, 1, 2, 7, 50001})
      for (DType dtype : {DType::f64, DType::f32, DType::bf16})
        op.add(
              text(ends.first, " to ", ends.second, ", ", n, ' ', dtype), {},
              [=](const Tensors&) { return linspace(ends.first, ends.second, n, options_of(dtype)); },
              [=](const Arrays&) {
                return sequence(n, dtype, [=](int64_t i) {
                  const double last = static_cast<double>(n - 1), at = static_cast<double>(i);
                  return n == 1 ? ends.first : (ends.first * (last - at) + ends.second * at) / last;
                });
              })
            .large = n == 50001;
  op.refuse({"-1"}, [] { linspace(0, 1, -1); });
  op.refuse({"inf"}, [] { linspace(0, HUGE_VAL, 2); });
  op.refuse({"i64"}, [] { linspace(0, 1, 2, {DType::i64}); });
  return op;
}

OpCase eye_row() {
  OpCase op = row("eye", "(int64_t rows, int64_t columns = -1, TensorOptions options = {})",
                  "1 where row = column, 0 elsewhere");
  for (int64_t rows : {0, 1, 3, 5, 300})
    for (int64_t columns : {-1, 0, 1, 4, 200})
      for (DType dtype : {DType::f32, DType::u8})
        op.add(
              text(rows, " x ", columns, ' ', dtype), {},
              [=](const Tensors&) { return eye(rows, columns, options_of(dtype)); },
              [=](const Arrays&) {
                return of(tabulate({rows, columns < 0 ? rows : columns}, [](const Dims& i) { return i[0] == i[1]; }),
                          dtype);
              })
            .large = rows * columns > 20000;
  op.refuse({"-2"}, [] { eye(-2); });
  op.refuse({"-3"}, [] { eye(2, -3); });
  return op;
}

}  // namespace

std::vector<OpCase> create_cases() {
  return {filled_row("zeros", "(const Dims& shape, TensorOptions options = {})", "0", 0, zeros),
          filled_row("ones", "(const Dims& shape, TensorOptions options = {})", "1", 1, ones),
          refusing_bytes(filled_row("full", "(const Dims& shape, Scalar value, TensorOptions options = {})", "value", 7,
                                    [](const Dims& s, TensorOptions o) { return full(s, 7, o); }),
                         [] { return full({2}, 300, {DType::u8}); }),
          like_row("zeros_like", "(like)", "0 in the shape, dtype and device of `like`", 0, zeros_like),
          like_row("ones_like", "(like)", "1 in the shape, dtype and device of `like`", 1, ones_like),
          refusing_bytes(like_row("full_like", "(like, Scalar value)", "value in the shape, dtype and device of `like`",
                                  2.5, [](const Tensor& x) { return full_like(x, 2.5); }),
                         [] { return full_like(reals({2}, DType::u8), 300); }),
          arange_row(),
          arange_count_row(),
          linspace_row(),
          eye_row()};
}

}  // namespace isonorm::test
