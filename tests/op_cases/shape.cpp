// Rows of ops that change how elements are addressed.
#include <algorithm>
#include <numeric>
#include <set>

#include "autograd/ops/shape.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase row(std::string name, std::string parameters, std::string formula) {
  return row_of("Shapes and views", std::move(name), parameters, std::move(formula));
}

// u8 samples are included so that moved bytes are checked for all element sizes.
template <class Run, class Reference>
void add(OpCase& op, const std::string& label, const Dims& shape, Run run, Reference reference) {
  if (op.samples.size() % 6 == 3) op.add(label + " u8", {op.draw.mask(shape)}, run, reference);
  add_moved(op, label, shape, run, reference);
}

// A reference that gives the same elements another shape.
auto shaped(const Dims& to) {
  return [to](const Array& x) { return reshaped(x, to); };
}

// Other shapes with the same number of elements: flat, split in two, with added sizes of 1, reversed.
std::vector<Dims> other_shapes(const Dims& shape) {
  int64_t n = 1;
  Dims reversed = shape, loose;
  for (int d = 0; d < shape.rank; ++d) {
    n *= shape[d];
    reversed[d] = shape[shape.rank - 1 - d];
    if (d < 3) loose.push_back(1), loose.push_back(shape[d]);
  }
  for (int d = 3; d < shape.rank; ++d) loose.push_back(shape[d]);
  std::vector<Dims> others = {{n}, reversed, loose};
  if (n == 1) others.push_back({});
  for (int64_t f : {2, 3, 17})
    if (n > 0 && n % f == 0) others.push_back({f, n / f}), others.push_back({n / f, 1, f});
  return others;
}

OpCase reshape_row(const char* name, const char* formula, Tensor (*call)(const Tensor&, const Dims&), bool layouts) {
  OpCase op = row(name, "(x, const Dims& shape)", formula);
  const auto add_one = [&](const Dims& from, const Dims& to, const Dims& wish) {
    add(
        op, text("to ", wish), from, [=](const Tensor& x) { return call(x, wish); }, shaped(to));
  };
  for (const Dims& shape : shapes())
    for (const Dims& to : other_shapes(shape)) {
      add_one(shape, to, to);
      if (to.rank > 0 && !is_empty(to)) add_one(shape, to, resized(to, to.rank / 2, -1));
    }
  add_one(kLarge, {numel(kLarge) / 7, 7}, {-1, 7});
  for (Sample& s : op.samples) s.layouts = layouts;
  op.refuse({"[2, 3]", "[4]", "6", "4"}, [=] { call(reals({2, 3}), {4}); });
  op.refuse({"-1", "more than one"}, [=] { call(reals({2, 3}), {-1, -1}); });
  op.refuse({"[2, 3]", "[4, -1]"}, [=] { call(reals({2, 3}), {4, -1}); });
  op.refuse({"-2", "negative"}, [=] { call(reals({2, 3}), {-2, 3}); });
  return op;
}

OpCase flatten_row() {
  OpCase op = row("flatten", "(x, int first = 0, int last = -1)", "dimensions first to last become one");
  const auto add_one = [&](const Dims& shape, int first, int last) {
    const int end = last < 0 ? shape.rank + last : last;
    Dims to;
    for (int d = 0; d < shape.rank; ++d) {
      if (d <= first || d > end)
        to.push_back(shape[d]);
      else
        to[to.rank - 1] *= shape[d];
    }
    if (shape.rank == 0) to = {1};
    add(
        op, text("dims ", first, " to ", last), shape, [=](const Tensor& x) { return flatten(x, first, last); },
        shaped(to));
  };
  for (const Dims& shape : shapes())
    for (int first = 0; first < std::max(1, shape.rank); ++first)
      for (int last : std::set{first, shape.rank - 1, -1})
        if (shape.rank == 0 ? last == -1 : last < shape.rank) add_one(shape, first, last);
  add_one(kLarge, 0, 1);
  op.refuse({"dimension 2", "rank 2"}, [] { flatten(reals({2, 3}), 0, 2); });
  op.refuse({"first dimension 1", "last, 0"}, [] { flatten(reals({2, 3}), 1, 0); });
  return op;
}

using Order = std::vector<int>;

Order ascending(int rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Array permuted(const Array& x, Order order) {
  Dims to = x.shape;
  for (int& d : order) d += d < 0 ? to.rank : 0;
  for (int d = 0; d < to.rank; ++d) to[d] = x.shape[order[d]];
  return moved(x, to, [&](const Dims& i) {
    Dims from = i;
    for (int d = 0; d < to.rank; ++d) from[order[d]] = i[d];
    return from;
  });
}

Array transposed(const Array& x, int a, int b) {
  Order order = ascending(x.shape.rank);
  std::swap(order[a < 0 ? a + x.shape.rank : a], order[b < 0 ? b + x.shape.rank : b]);
  return permuted(x, order);
}

OpCase permute_row() {
  OpCase op =
      row("permute", "(x, const std::vector<int>& order)", "dimension i of the result is dimension order_i of x");
  const auto add_one = [&](const Dims& shape, const Order& order) {
    add(
        op, label_of("order", order), shape, [=](const Tensor& x) { return permute(x, order); },
        [=](const Array& x) { return permuted(x, order); });
  };
  for (const Dims& shape : shapes()) {
    Order order = ascending(shape.rank);
    add_one(shape, order);
    if (shape.rank < 2) continue;
    std::rotate(order.begin(), order.begin() + 1, order.end());
    add_one(shape, order);
    if (shape.rank < 3) continue;
    std::swap(order[0], order[1]);
    for (int& d : order) d -= shape.rank;
    add_one(shape, order);
  }
  add_one(kLarge, {2, 0, 1});
  op.refuse({"1 dimensions", "rank 2"}, [] { permute(reals({2, 3}), {0}); });
  op.refuse({"dimension 0", "twice"}, [] { permute(reals({2, 3}), {0, 0}); });
  op.refuse({"dimension 2", "rank 2"}, [] { permute(reals({2, 3}), {0, 2}); });
  return op;
}

OpCase transpose_row() {
  OpCase op = row("transpose", "(x, int a, int b)", "dimensions a and b change places");
  const auto add_one = [&](const Dims& shape, int a, int b) {
    add(
        op, text("dims ", a, " and ", b), shape, [=](const Tensor& x) { return transpose(x, a, b); },
        [=](const Array& x) { return transposed(x, a, b); });
  };
  for (const Dims& shape : shapes(1)) add_one(shape, 0, -1), add_one(shape, shape.rank / 2, 0);
  add_one(kLarge, -1, 0);
  op.refuse({"dimension 2", "rank 2"}, [] { transpose(reals({2, 3}), 0, 2); });
  return op;
}

OpCase squeeze_row() {
  OpCase op = row("squeeze", "(x, int dim)", "drops dimension dim, whose size is 1");
  const auto add_one = [&](const Dims& to, int d, int dim) {
    add(
        op, text("dim ", dim), inserted(to, d, 1), [=](const Tensor& x) { return squeeze(x, dim); }, shaped(to));
  };
  for (const Dims& shape : shapes(0, 4)) {
    add_one(shape, 0, 0);
    if (shape.rank > 0) add_one(shape, shape.rank, -1);
  }
  add_one({51051}, 1, 1);
  op.samples.back().large = true;
  op.refuse({"dimension 1", "[2, 3]", "3"}, [] { squeeze(reals({2, 3}), 1); });
  op.refuse({"dimension 2", "rank 2"}, [] { squeeze(reals({2, 3}), 2); });
  return op;
}

OpCase unsqueeze_row() {
  OpCase op = row("unsqueeze", "(x, int dim)", "a new dimension of size 1 before dim");
  for (const Dims& shape : shapes_and_large())
    for (int d = 0; d <= shape.rank; ++d) {
      const int dim = d % 2 ? d - shape.rank - 1 : d;
      add(
          op, text("dim ", dim), shape, [=](const Tensor& x) { return unsqueeze(x, dim); },
          shaped(inserted(shape, d, 1)));
    }
  op.refuse({"dimension 3", "rank 3"}, [] { unsqueeze(reals({2, 3}), 3); });
  op.refuse({"[1, 1, 1, 1, 1, 1, 1, 1]", "8"}, [] { unsqueeze(reals({1, 1, 1, 1, 1, 1, 1, 1}), 0); });
  return op;
}

OpCase expand_row() {
  OpCase op = row("expand", "(x, const Dims& shape)",
                  "sizes of 1, and missing leading ones, stretched to shape; -1 keeps a size");
  const auto add_one = [&](const Dims& shape, const Dims& to, const Dims& wish) {
    add(
        op, text("to ", wish), shape, [=](const Tensor& x) { return expand(x, wish); },
        [=](const Array& x) {
          return tabulate(
              to, [&](const Dims& i) { return x.stretched(i); }, x.kind);
        });
  };
  for (const Dims& shape : shapes(0, 4)) {
    Dims wide = inserted(shape, 0, 2);
    for (int d = 1; d < wide.rank; ++d)
      if (wide[d] == 1) wide[d] = 3;
    for (const Dims& to : {shape, wide, resized(wide, 0, 0)}) add_one(shape, to, to);
    for (int d = 1; d < wide.rank; ++d)
      if (wide[d] == shape[d - 1]) add_one(shape, wide, resized(wide, d, -1));
  }
  add_one({60, 1}, {60, 1000}, {-1, 1000});
  op.samples.back().large = true;
  op.refuse({"[2, 3]", "[2, 4]"}, [] { expand(reals({2, 3}), {2, 4}); });
  op.refuse({"[2, 3]", "[3]"}, [] { expand(reals({2, 3}), {3}); });
  op.refuse({"size -1 at dimension 0 of [-1, 2, 1]"}, [] { expand(reals({2, 1}), {-1, 2, 1}); });
  op.refuse({"[-2, 1]"}, [] { expand(reals({2, 1}), {-2, 1}); });
  return op;
}

OpCase contiguous_row() {
  OpCase op = row("contiguous", "(x)", "x in row-major order without gaps");
  op.refuses = false;
  for (const Dims& shape : shapes_and_large()) {
    add(
        op, "", shape, [](const Tensor& x) { return contiguous(x); }, [](const Array& x) { return x; });
    add(
        op, "turned", shape, [](const Tensor& x) { return contiguous(transpose(unsqueeze(x, 0), 0, -1)); },
        [](const Array& x) { return transposed(reshaped(x, inserted(x.shape, 0, 1)), 0, -1); });
  }
  return op;
}

}  // namespace

std::vector<OpCase> shape_cases() {
  OpCase as_view = reshape_row("view", "as reshape, but throws where it would copy", isonorm::view, false);
  as_view.refuse({"[3, 2]", "[6]", "without a copy"}, [] { view(transpose(reals({2, 3}), 0, 1), {6}); });
  return {reshape_row("reshape", "the same elements in row-major order under another shape; one size may be -1",
                      isonorm::reshape, true),
          as_view,
          flatten_row(),
          permute_row(),
          transpose_row(),
          squeeze_row(),
          unsqueeze_row(),
          expand_row(),
          contiguous_row()};
}

}  // namespace isonorm::test
