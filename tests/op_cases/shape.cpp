// Rows of the ops that change how elements are addressed.
#include <algorithm>

#include "autograd/ops/shape.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase row(std::string name, std::string parameters, std::string formula, bool refuses = true) {
  return {.name = name,
          .group = "Shapes and views",
          .signature = name + parameters,
          .formula = std::move(formula),
          .tolerance = tolerance::exact,
          .refuses = refuses};
}

Array reshaped(Array x, const Dims& shape) {
  x.shape = shape;
  return x;
}

// Values of every dtype, so that moved bytes are checked for all element sizes.
template <class Run, class Reference>
void add(OpCase& op, Draw& draw, const std::string& label, const Dims& shape, Run run, Reference reference,
         bool layouts = true) {
  const auto one = [reference](const Arrays& x) { return reference(x[0]); };
  const auto call = [run](const Tensors& x) { return run(x[0]); };
  op.add(label, {draw.normal(shape)}, call, one).layouts = layouts;
  if (op.samples.size() % 7 == 0) op.add(label + " i64", {draw.index(shape, 1000)}, call, one).layouts = layouts;
  if (op.samples.size() % 7 == 1) op.add(label + " u8", {draw.mask(shape)}, call, one).layouts = layouts;
}
template <class Run, class Reference>
void add_large(OpCase& op, Draw& draw, const std::string& label, Run run, Reference reference) {
  op.add(
        label, {draw.normal(kLarge)}, [run](const Tensors& x) { return run(x[0]); },
        [reference](const Arrays& x) { return reference(x[0]); })
      .large = true;
}

// Other shapes of as many elements: flat, split in two, with sizes of 1 put in, reversed.
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
  Draw draw(name);
  const auto add_one = [&](const Dims& from, const Dims& to) {
    std::vector<Dims> wishes = {to};
    if (to.rank > 0 && !is_empty(to)) {
      wishes.push_back(to);
      wishes.back()[to.rank / 2] = -1;
    }
    for (const Dims& wish : wishes)
      add(
          op, draw, text("to ", wish), from, [=](const Tensor& x) { return call(x, wish); },
          [=](const Array& x) { return reshaped(x, to); }, layouts);
  };
  for (const Dims& shape : shapes())
    for (const Dims& to : other_shapes(shape)) add_one(shape, to);
  add_large(
      op, draw, "to [-1, 7]",
      [=](const Tensor& x) {
        return call(x, {-1, 7});
      },
      [](const Array& x) {
        return reshaped(x, {x.size() / 7, 7});
      });
  op.refuse({"[2, 3]", "[4]", "6", "4"}, [=] { call(reals({2, 3}), {4}); });
  op.refuse({"-1", "more than one"}, [=] { call(reals({2, 3}), {-1, -1}); });
  op.refuse({"[2, 3]", "[4, -1]"}, [=] { call(reals({2, 3}), {4, -1}); });
  op.refuse({"-2", "negative"}, [=] { call(reals({2, 3}), {-2, 3}); });
  return op;
}

OpCase flatten_row() {
  OpCase op = row("flatten", "(x, int first = 0, int last = -1)", "dimensions first to last become one");
  Draw draw(op.name);
  for (const Dims& shape : shapes())
    for (int first = 0; first < std::max(1, shape.rank); ++first)
      for (int last : {first, shape.rank - 1, -1}) {
        if (shape.rank == 0 ? last < -1 : last >= shape.rank) continue;
        const int end = last < 0 ? shape.rank + last : last;
        Dims to;
        for (int d = 0; d < shape.rank; ++d) {
          if (d <= first || d > end)
            to.push_back(shape[d]);
          else
            to[to.rank - 1] *= shape[d];
        }
        if (shape.rank == 0) to = {1};
        const std::string label = text("dims ", first, " to ", last);
        if (!op.samples.empty() && std::any_of(op.samples.begin(), op.samples.end(), [&](const Sample& s) {
              return s.label == label && s.inputs[0].shape == shape;
            }))
          continue;
        add(
            op, draw, label, shape, [=](const Tensor& x) { return flatten(x, first, last); },
            [=](const Array& x) { return reshaped(x, to); });
      }
  add_large(
      op, draw, "dims 0 to 1", [](const Tensor& x) { return flatten(x, 0, 1); },
      [](const Array& x) {
        return reshaped(x, {51, 1001});
      });
  op.refuse({"dimension 2", "rank 2"}, [] { flatten(reals({2, 3}), 0, 2); });
  op.refuse({"first dimension 1", "last, 0"}, [] { flatten(reals({2, 3}), 1, 0); });
  return op;
}

Array permuted(const Array& x, const std::vector<int>& order) {
  Dims shape = x.shape;
  for (int d = 0; d < shape.rank; ++d) shape[d] = x.shape[order[d] < 0 ? order[d] + shape.rank : order[d]];
  return {tabulate(
      shape,
      [&](const Dims& i) {
        Dims from = i;
        for (int d = 0; d < shape.rank; ++d) from[order[d] < 0 ? order[d] + shape.rank : order[d]] = i[d];
        return x.at(from);
      },
      x.kind)};
}

OpCase permute_row() {
  OpCase op =
      row("permute", "(x, const std::vector<int>& order)", "dimension i of the result is dimension order_i of x");
  Draw draw(op.name);
  const auto add_one = [&](const Dims& shape, std::vector<int> order) {
    std::string label = "order";
    for (int d : order) label += text(' ', d);
    add(
        op, draw, label, shape, [=](const Tensor& x) { return permute(x, order); },
        [=](const Array& x) { return permuted(x, order); });
  };
  for (const Dims& shape : shapes()) {
    std::vector<int> order(shape.rank);
    for (int d = 0; d < shape.rank; ++d) order[d] = d;
    add_one(shape, order);
    if (shape.rank < 2) continue;
    std::rotate(order.begin(), order.begin() + 1, order.end());
    add_one(shape, order);
    if (shape.rank < 3) continue;
    std::swap(order[0], order[1]);
    for (int& d : order) d -= shape.rank;
    add_one(shape, order);
  }
  const std::vector<int> turn = {2, 0, 1};
  add_large(
      op, draw, "order 2 0 1", [=](const Tensor& x) { return permute(x, turn); },
      [=](const Array& x) { return permuted(x, turn); });
  op.refuse({"1 dimensions", "rank 2"}, [] { permute(reals({2, 3}), {0}); });
  op.refuse({"dimension 0", "twice"}, [] { permute(reals({2, 3}), {0, 0}); });
  op.refuse({"dimension 2", "rank 2"}, [] { permute(reals({2, 3}), {0, 2}); });
  return op;
}

OpCase transpose_row() {
  OpCase op = row("transpose", "(x, int a, int b)", "dimensions a and b change places");
  Draw draw(op.name);
  const auto reference = [](int a, int b) {
    return [=](const Array& x) {
      std::vector<int> order(x.shape.rank);
      for (int d = 0; d < x.shape.rank; ++d) order[d] = d;
      std::swap(order[a < 0 ? a + x.shape.rank : a], order[b < 0 ? b + x.shape.rank : b]);
      return permuted(x, order);
    };
  };
  for (const Dims& shape : shapes(1))
    for (const auto& [a, b] : {std::pair{0, -1}, std::pair{shape.rank / 2, 0}})
      add(
          op, draw, text("dims ", a, " and ", b), shape, [a = a, b = b](const Tensor& x) { return transpose(x, a, b); },
          reference(a, b));
  add_large(
      op, draw, "dims -1 and 0", [](const Tensor& x) { return transpose(x, -1, 0); }, reference(-1, 0));
  op.refuse({"dimension 2", "rank 2"}, [] { transpose(reals({2, 3}), 0, 2); });
  return op;
}

OpCase squeeze_row() {
  OpCase op = row("squeeze", "(x, int dim)", "drops dimension dim, whose size is 1");
  Draw draw(op.name);
  const auto with_one = [](const Dims& shape, int d) {
    Dims wide;
    for (int i = 0; i <= shape.rank; ++i) {
      if (i == d) wide.push_back(1);
      if (i < shape.rank) wide.push_back(shape[i]);
    }
    return wide;
  };
  for (const Dims& shape : shapes(0, 4))
    for (int d : {0, shape.rank}) {
      const int dim = d ? -1 : 0;
      add(
          op, draw, text("dim ", dim), with_one(shape, d), [=](const Tensor& x) { return squeeze(x, dim); },
          [=](const Array& x) { return reshaped(x, shape); });
    }
  op.add(
        "dim 1", {draw.normal({51051, 1})}, [](const Tensors& x) { return squeeze(x[0], 1); },
        [](const Arrays& x) { return reshaped(x[0], {51051}); })
      .large = true;
  op.refuse({"dimension 1", "[2, 3]", "3"}, [] { squeeze(reals({2, 3}), 1); });
  op.refuse({"dimension 2", "rank 2"}, [] { squeeze(reals({2, 3}), 2); });
  return op;
}

OpCase unsqueeze_row() {
  OpCase op = row("unsqueeze", "(x, int dim)", "a new dimension of size 1 before dim");
  Draw draw(op.name);
  for (const Dims& shape : shapes())
    for (int d = 0; d <= shape.rank; ++d) {
      Dims to;
      for (int i = 0; i <= shape.rank; ++i) {
        if (i == d) to.push_back(1);
        if (i < shape.rank) to.push_back(shape[i]);
      }
      const int dim = d % 2 ? d - shape.rank - 1 : d;
      add(
          op, draw, text("dim ", dim), shape, [=](const Tensor& x) { return unsqueeze(x, dim); },
          [=](const Array& x) { return reshaped(x, to); });
    }
  add_large(
      op, draw, "dim 1", [](const Tensor& x) { return unsqueeze(x, 1); },
      [](const Array& x) {
        return reshaped(x, {3, 1, 17, 1001});
      });
  op.refuse({"dimension 3", "rank 3"}, [] { unsqueeze(reals({2, 3}), 3); });
  op.refuse({"[1, 1, 1, 1, 1, 1, 1, 1]", "8"}, [] { unsqueeze(reals({1, 1, 1, 1, 1, 1, 1, 1}), 0); });
  return op;
}

OpCase expand_row() {
  OpCase op = row("expand", "(x, const Dims& shape)",
                  "sizes of 1, and missing leading ones, stretched to shape; -1 keeps a size");
  Draw draw(op.name);
  const auto reference = [](const Dims& to) {
    return [to](const Array& x) {
      return tabulate(
          to, [&](const Dims& i) { return x.stretched(i); }, x.kind);
    };
  };
  for (const Dims& shape : shapes(0, 4)) {
    Dims wide;
    wide.push_back(2);
    for (int64_t s : shape) wide.push_back(s == 1 ? 3 : s);
    Dims none = wide;
    none[0] = 0;
    for (const Dims& to : {shape, wide, none})
      add(
          op, draw, text("to ", to), shape, [=](const Tensor& x) { return expand(x, to); }, reference(to));
  }
  op.add(
        "to [60, 1000]", {draw.normal({60, 1})},
        [](const Tensors& x) {
          return expand(x[0], {60, 1000});
        },
        [=](const Arrays& x) {
          return reference({60, 1000})(x[0]);
        })
      .large = true;
  op.refuse({"[2, 3]", "[2, 4]"}, [] { expand(reals({2, 3}), {2, 4}); });
  op.refuse({"[2, 3]", "[3]"}, [] { expand(reals({2, 3}), {3}); });
  return op;
}

OpCase contiguous_row() {
  OpCase op = row("contiguous", "(x)", "x in row-major order without gaps", false);
  Draw draw(op.name);
  const auto run = [](const Tensor& x) { return contiguous(transpose(unsqueeze(x, 0), 0, -1)); };
  const auto reference = [](const Array& x) {
    Dims wide;
    wide.push_back(1);
    for (int64_t s : x.shape) wide.push_back(s);
    std::vector<int> order(wide.rank);
    for (int d = 0; d < wide.rank; ++d) order[d] = d;
    std::swap(order.front(), order.back());
    return permuted(reshaped(x, wide), order);
  };
  for (const Dims& shape : shapes()) {
    add(
        op, draw, "", shape, [](const Tensor& x) { return contiguous(x); }, [](const Array& x) { return x; });
    add(op, draw, "turned", shape, run, reference);
  }
  add_large(op, draw, "turned", run, reference);
  return op;
}

}  // namespace

std::vector<OpCase> shape_cases() {
  std::vector<OpCase> all;
  all.push_back(reshape_row("reshape", "the same elements in row-major order under another shape; one size may be -1",
                            isonorm::reshape, true));
  all.push_back(reshape_row("view", "as reshape, but throws where it would copy", isonorm::view, false));
  all.back().refuse({"[3, 2]", "[6]", "without a copy"}, [] { view(transpose(reals({2, 3}), 0, 1), {6}); });
  all.push_back(flatten_row());
  all.push_back(permute_row());
  all.push_back(transpose_row());
  all.push_back(squeeze_row());
  all.push_back(unsqueeze_row());
  all.push_back(expand_row());
  all.push_back(contiguous_row());
  return all;
}

}  // namespace isonorm::test
