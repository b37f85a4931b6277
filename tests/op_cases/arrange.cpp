// Rows of ops that cut, join, pad and mask.
#include <algorithm>

#include "autograd/ops/shape.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase row(std::string name, std::string parameters, std::string formula) {
  return row_of("Cutting and joining", std::move(name), parameters, std::move(formula));
}

// Entries [begin, begin + step, ...) of dimension d, `length` of them.
Array cut(const Array& x, int d, int64_t begin, int64_t length, int64_t step = 1) {
  return moved(x, resized(x.shape, d, length), [&](const Dims& i) { return resized(i, d, begin + i[d] * step); });
}

OpCase slice_row() {
  OpCase op = row("slice", "(x, int dim, int64_t begin, int64_t end, int64_t step = 1)",
                  "entries begin, begin + step, ... before end of dim; negative ends count back");
  struct Range {
    int64_t begin, end, step;
  };
  for (const Dims& shape : shapes_and_large(1))
    for (int d = 0; d < std::min(3, shape.rank); ++d)
      for (const Range& r : {Range{0, 2, 1}, Range{1, -1, 1}, Range{-3, 100, 2}, Range{2, 1, 1}}) {
        const int64_t n = shape[d];
        const auto bound = [n](int64_t i) { return i < 0 ? std::max<int64_t>(0, i + n) : std::min(i, n); };
        const int64_t from = bound(r.begin), to = bound(r.end), length = std::max<int64_t>(0, to - from + r.step - 1);
        const int dim = d % 2 ? d - shape.rank : d;
        add_moved(
            op, text("dim ", dim, " [", r.begin, ", ", r.end, ") step ", r.step), shape,
            [=](const Tensor& x) { return slice(x, dim, r.begin, r.end, r.step); },
            [=](const Array& x) { return cut(x, d, from, length / r.step, r.step); });
      }
  op.refuse({"step 0"}, [] { slice(reals({2}), 0, 0, 1, 0); });
  op.refuse({"dimension 1", "rank 1"}, [] { slice(reals({2}), 1, 0, 1); });
  return op;
}

OpCase narrow_row() {
  OpCase op = row("narrow", "(x, int dim, int64_t begin, int64_t length)", "entries [begin, begin + length) of dim");
  for (const Dims& shape : shapes_and_large(1))
    for (int d = 0; d < shape.rank; ++d)
      for (int64_t begin : {int64_t{0}, shape[d] / 2}) {
        if (begin == 0 && d > 0) continue;
        const int64_t length = shape[d] - begin - (begin == 0 && shape[d] > 0);
        add_moved(
            op, text("dim ", d, " from ", begin, begin ? "" : " all but one"), shape,
            [=](const Tensor& x) { return narrow(x, d - x.rank(), begin, length); },
            [=](const Array& x) { return cut(x, d, begin, length); });
      }
  op.refuse({"[1, 1 + 2)", "dimension 0", "[2]"}, [] { narrow(reals({2}), 0, 1, 2); });
  op.refuse({"[0, 0 + -1)"}, [] { narrow(reals({2}), 0, 0, -1); });
  op.refuse({"dimension 1", "rank 1"}, [] { narrow(reals({2}), 1, 0, 1); });
  return op;
}

OpCase select_row() {
  OpCase op = row("select", "(x, int dim, int64_t index)", "entry index of dim, which is dropped");
  for (const Dims& shape : shapes_and_large(1))
    for (int d = 0; d < shape.rank; ++d)
      for (int64_t index : {int64_t{0}, int64_t{-1}}) {
        if (shape[d] == 0) continue;
        add_moved(
            op, text("dim ", d, " index ", index), shape, [=](const Tensor& x) { return select(x, d, index); },
            [=](const Array& x) { return reshaped(cut(x, d, index ? shape[d] - 1 : 0, 1), removed(shape, d)); });
      }
  op.refuse({"index 2", "dimension 0", "[2]"}, [] { select(reals({2}), 0, 2); });
  op.refuse({"dimension 1", "rank 1"}, [] { select(reals({2}), 1, 0); });
  return op;
}

// Consecutive parts of the given sizes.
Arrays parts_of(const Array& x, const std::vector<int64_t>& sizes, int d) {
  Arrays parts;
  int64_t at = 0;
  for (int64_t s : sizes) parts.push_back(cut(x, d, at, s)), at += s;
  return parts;
}

OpCase split_row() {
  OpCase op =
      row("split", "(x, const std::vector<int64_t>& sizes, int dim)", "consecutive parts of the given sizes along dim");
  for (const Dims& shape : shapes_and_large(1))
    for (int d = 0; d < shape.rank; ++d) {
      const int64_t n = shape[d];
      const std::vector<int64_t> sizes = {n / 3, n - n / 3 - n / 4, 0, n / 4};
      add_moved(
          op, text("dim ", d), shape, [=](const Tensor& x) { return split(x, sizes, d); },
          [=](const Array& x) { return parts_of(x, sizes, d); });
    }
  op.refuse({"sum to 3", "[2]"}, [] { split(reals({2}), {1, 2}, 0); });
  op.refuse({"size -1"}, [] { split(reals({2}), {3, -1}, 0); });
  op.refuse({"dimension 1", "rank 1"}, [] { split(reals({2}), {2}, 1); });
  return op;
}

OpCase chunk_row() {
  OpCase op = row("chunk", "(x, int64_t parts, int dim)",
                  "at most `parts` parts of equal size along dim, the last may be smaller");
  for (const Dims& shape : shapes_and_large(1))
    for (int64_t parts : {2, 3}) {
      const int d = static_cast<int>(parts) % shape.rank;
      const int64_t n = shape[d], length = std::max<int64_t>(1, (n + parts - 1) / parts);
      std::vector<int64_t> sizes;
      for (int64_t at = 0; at < n || sizes.empty(); at += length) sizes.push_back(std::min(length, n - at));
      add_moved(
          op, text(parts, " parts, dim ", d), shape, [=](const Tensor& x) { return chunk(x, parts, d); },
          [=](const Array& x) { return parts_of(x, sizes, d); });
    }
  op.refuse({"0 parts"}, [] { chunk(reals({2}), 0, 0); });
  op.refuse({"dimension 1", "rank 1"}, [] { chunk(reals({2}), 1, 1); });
  return op;
}

Array joined(const Arrays& parts, int d) {
  Dims shape = resized(parts[0].shape, d, 0);
  for (const Array& p : parts) shape[d] += p.shape[d];
  return tabulate(
      shape,
      [&](Dims i) {
        size_t part = 0;
        while (i[d] >= parts[part].shape[d]) i[d] -= parts[part++].shape[d];
        return parts[part].at(i);
      },
      parts[0].kind);
}

OpCase cat_row() {
  OpCase op = row("cat", "(const std::vector<Tensor>& parts, int dim = 0)", "the parts one after the other along dim");
  const auto add = [&](const Arrays& parts, int d) -> Sample& {
    return op.add(
        text("dim ", d), parts, [=](const Tensors& x) { return cat(x, d); },
        [=](const Arrays& x) { return joined(x, d < 0 ? d + x[0].shape.rank : d); });
  };
  for (const Dims& shape : shapes(1))
    for (int d = 0; d < shape.rank; ++d)
      add({op.draw.normal(shape), op.draw.normal(resized(shape, d, d + 1)), op.draw.normal(shape)},
          d % 2 ? d - shape.rank : d);
  add({op.draw.normal({3})}, 0);
  add({op.draw.index({3}, 9), op.draw.index({2}, 9)}, 0);
  add({op.draw.normal(kLarge), op.draw.normal({3, 2, 1001})}, 1).large = true;
  op.refuse({"no tensors"}, [] { cat({}, 0); });
  op.refuse({"[2, 3]", "[3, 2]", "dimension 0"}, [] { cat({reals({2, 3}), reals({3, 2})}, 0); });
  op.refuse({"[2]", "[2, 1]"}, [] { cat({reals({2}), reals({2, 1})}, 0); });
  op.refuse({"f32", "f64"}, [] { cat({reals({2}), reals({2}, DType::f64)}, 0); });
  op.refuse({"dimension 1", "rank 1"}, [] { cat({reals({2})}, 1); });
  return op;
}

OpCase stack_row() {
  OpCase op =
      row("stack", "(const std::vector<Tensor>& parts, int dim = 0)", "the parts side by side along a new dimension");
  const auto add = [&](const Arrays& parts, int d) -> Sample& {
    return op.add(
        text("dim ", d), parts, [=](const Tensors& x) { return stack(x, d); },
        [=](const Arrays& x) {
          const int dim = d < 0 ? d + x[0].shape.rank + 1 : d;
          Arrays wide;
          for (const Array& a : x) wide.push_back(reshaped(a, inserted(a.shape, dim, 1)));
          return joined(wide, dim);
        });
  };
  for (const Dims& shape : shapes())
    for (int d = 0; d <= shape.rank; ++d)
      add({op.draw.normal(shape), op.draw.normal(shape)}, d % 2 ? d - shape.rank - 1 : d);
  add({op.draw.normal(kLarge), op.draw.normal(kLarge)}, 1).large = true;
  op.refuse({"no tensors"}, [] { stack({}, 0); });
  op.refuse({"[2]", "[3]"}, [] { stack({reals({2}), reals({3})}, 0); });
  op.refuse({"f32", "f64"}, [] { stack({reals({2}), reals({2}, DType::f64)}, 0); });
  op.refuse({"[1, 1, 1, 1, 1, 1, 1, 1]", "8"}, [] { stack({reals({1, 1, 1, 1, 1, 1, 1, 1})}, 0); });
  op.refuse({"dimension 2", "rank 2"}, [] { stack({reals({2})}, 2); });
  return op;
}

OpCase pad_sequence_row() {
  OpCase op = row("pad_sequence", "(const std::vector<Tensor>& sequences, bool batch_first = true, Scalar value = 0)",
                  "sequences as one tensor, padded with value behind their ends");
  const auto add = [&](const Arrays& parts, bool batch_first, double value, const char* label = "") {
    op.add(
          text(batch_first ? "" : "time first ", "value ", value, label), parts,
          [=](const Tensors& x) { return pad_sequence(x, batch_first, value); },
          [=](const Arrays& x) {
            int64_t longest = 0;
            for (const Array& s : x) longest = std::max(longest, s.shape[0]);
            const auto n = static_cast<int64_t>(x.size());
            Dims shape = inserted(resized(x[0].shape, 0, longest), batch_first ? 0 : 1, n);
            return tabulate(
                shape,
                [&](const Dims& i) {
                  const Array& s = x[static_cast<size_t>(i[batch_first ? 0 : 1])];
                  const Dims at = removed(i, batch_first ? 0 : 1);
                  return at[0] < s.shape[0] ? s.at(at) : value;
                },
                x[0].kind);
          })
        .large = parts[0].shape[0] > 1000;
  };
  for (bool batch_first : {true, false})
    for (double value : {0.0, -1.0}) {
      for (const Dims& inner : {Dims{}, Dims{3}, Dims{2, 3}, Dims{0}}) {
        Arrays parts;
        for (int64_t length : {2, 5, 0, 3}) parts.push_back(op.draw.normal(inserted(inner, 0, length)));
        add(parts, batch_first, value);
      }
      add({op.draw.normal({4})}, batch_first, value),
          add({op.draw.normal({1, 2}), op.draw.normal({3, 2})}, batch_first, value);
      add({op.draw.index({4}, 9), op.draw.index({1}, 9)}, batch_first, value, " i64");
    }
  add({op.draw.normal({1001, 17}), op.draw.normal({900, 17})}, true, 0);
  op.refuse({"no sequences"}, [] { pad_sequence({}); });
  op.refuse({"[2, 3]", "[2, 4]"}, [] { pad_sequence({reals({2, 3}), reals({2, 4})}); });
  op.refuse({"f32", "i64"}, [] { pad_sequence({reals({2}), integers({2})}); });
  op.refuse({"[]"}, [] { pad_sequence({reals({})}); });
  return op;
}

OpCase flip_row() {
  OpCase op = row("flip", "(x, const std::vector<int>& dims)", "the order of the entries along dims reversed");
  for (const Dims& shape : shapes_and_large()) {
    std::vector<std::vector<int>> choices = {{}};
    if (shape.rank > 0) choices.push_back({-1});
    if (shape.rank > 1) choices.push_back({1, 0});
    for (const auto& dims : choices) {
      const auto source = [=](Dims i) {
        for (int d : dims) {
          const int at = d < 0 ? d + i.rank : d;
          i[at] = shape[at] - 1 - i[at];
        }
        return i;
      };
      add_moved(
          op, label_of("dims", dims), shape, [=](const Tensor& x) { return flip(x, dims); },
          [=](const Array& x) { return moved(x, shape, source); });
    }
  }
  op.refuse({"dimension 0", "twice"}, [] { flip(reals({2}), {0, 0}); });
  op.refuse({"dimension 1", "rank 1"}, [] { flip(reals({2}), {1}); });
  return op;
}

OpCase pad_row() {
  OpCase op = row("pad", "(x, const std::vector<std::pair<int64_t, int64_t>>& amounts, Scalar value = 0)",
                  "(before, after) entries of `value` around each of the last dimensions, outermost first");
  using Amounts = std::vector<std::pair<int64_t, int64_t>>;
  for (const Dims& shape : shapes_and_large()) {
    std::vector<Amounts> choices = {{}};
    if (shape.rank > 0) choices.push_back({{1, 2}});
    if (shape.rank > 1) choices.push_back({{0, 1}, {2, 0}});
    if (shape.rank > 0 && shape[shape.rank - 1] >= 2)
      choices.insert(choices.end(), {Amounts{{-1, 2}}, Amounts{{3, -2}}, Amounts{{-1, -1}}});
    for (const Amounts& amounts : choices) {
      const double value = amounts.size() == 2 ? -1 : 0;
      std::string label = text(amounts.size(), " dimensions");
      if (!amounts.empty()) label += text(' ', amounts[0].first, ' ', amounts[0].second);
      add_moved(
          op, label, shape, [=](const Tensor& x) { return pad(x, amounts, value); },
          [=](const Array& x) {
            const int first = x.shape.rank - static_cast<int>(amounts.size());
            Dims to = x.shape;
            for (size_t k = 0; k < amounts.size(); ++k) to[first + k] += amounts[k].first + amounts[k].second;
            const auto at = [&](Dims i) {
              for (size_t k = 0; k < amounts.size(); ++k) {
                int64_t& place = i[first + static_cast<int>(k)];
                place -= amounts[k].first;
                if (place < 0 || place >= x.shape[first + static_cast<int>(k)]) return value;
              }
              return x.at(i);
            };
            return tabulate(to, at, x.kind);
          });
    }
  }
  op.refuse({"2 pairs", "[2]"}, [] { pad(reals({2}), {{1, 1}, {1, 1}}); });
  op.refuse({"-1", "-2", "2 entries"}, [] { pad(reals({2}), {{-1, -2}}); });
  op.refuse({"300", "u8"}, [] { pad(reals({2}, DType::u8), {{1, 1}}, 300); });
  return op;
}

OpCase repeat_row() {
  OpCase op = row("repeat", "(x, const std::vector<int64_t>& times)",
                  "times_i copies one after the other along dimension i of the result");
  std::vector<Dims> all = shapes();
  all.push_back({2, 11, 1001});
  for (const Dims& shape : all) {
    std::vector<std::vector<int64_t>> choices = {std::vector<int64_t>(shape.rank, 1),
                                                 std::vector<int64_t>(shape.rank, 2)};
    if (shape.rank < 5) {
      choices.emplace_back(shape.rank + 1, 1).front() = 3;
      choices.emplace_back(shape.rank + 1, 2).back() = 0;
    }
    if (shape == Dims{2}) choices.push_back({1, 1, 1, 1, 1, 1, 1, 2});
    for (const auto& times : choices) {
      const int extra = static_cast<int>(times.size()) - shape.rank;
      Dims to;
      for (int k = 0; k < static_cast<int>(times.size()); ++k)
        to.push_back(times[k] * (k < extra ? 1 : shape[k - extra]));
      const auto source = [=](const Dims& i) {
        Dims from = shape;
        for (int d = 0; d < from.rank; ++d) from[d] = i[d + extra] % shape[d];
        return from;
      };
      add_moved(
          op, label_of("times", times), shape, [=](const Tensor& x) { return repeat(x, times); },
          [=](const Array& x) { return moved(x, to, source); })
          .large = shape.rank > 2 && shape[2] == 1001;
    }
  }
  op.refuse({"1 factors", "[2, 3]"}, [] { repeat(reals({2, 3}), {1}); });
  op.refuse({"-1"}, [] { repeat(reals({2}), {-1}); });
  return op;
}

OpCase repeat_interleave_row() {
  OpCase op = row("repeat_interleave", "(x, int64_t times, int dim)", "each entry along dim `times` times in a row");
  for (const Dims& shape : shapes_and_large(1))
    for (int d = 0; d < shape.rank; ++d)
      for (int64_t times : {1, 2, 3}) {
        const auto source = [=](const Dims& i) { return resized(i, d, i[d] / times); };
        add_moved(
            op, text("dim ", d, ", ", times, " times"), shape,
            [=](const Tensor& x) { return repeat_interleave(x, times, d % 2 ? d - shape.rank : d); },
            [=](const Array& x) { return moved(x, resized(shape, d, shape[d] * times), source); });
      }
  op.refuse({"-1"}, [] { repeat_interleave(reals({2}), -1, 0); });
  op.refuse({"dimension 1", "rank 1"}, [] { repeat_interleave(reals({2}), 2, 1); });
  op.refuse({"[1, 1, 1, 1, 1, 1, 1, 1]", "7"}, [] { repeat_interleave(reals({1, 1, 1, 1, 1, 1, 1, 1}), 2, 0); });
  return op;
}

OpCase triangle_row(std::string name, std::string formula, Tensor (*call)(const Tensor&, int64_t), bool lower) {
  OpCase op = row(name, "(x, int64_t diagonal = 0)", std::move(formula));
  std::vector<Dims> all = shapes(2);
  all.insert(all.end(), {{5, 3}, {3, 5}, {4, 4}, kLarge});
  const auto reference = [=](int64_t diagonal) {
    return [=](const Array& x) {
      const auto at = [&](const Dims& i) {
        const int64_t above = i[i.rank - 1] - i[i.rank - 2];
        return (lower ? above <= diagonal : above >= diagonal) ? x.at(i) : 0;
      };
      return tabulate(x.shape, at, x.kind);
    };
  };
  for (const Dims& shape : all)
    for (int64_t diagonal : {0, 1, -2})
      add_moved(
          op, text("diagonal ", diagonal), shape, [=](const Tensor& x) { return call(x, diagonal); },
          reference(diagonal));
  for (const Array& x : {op.draw.index({3, 7, 5}, 1000), op.draw.mask({3, 7, 5})})
    op.add(
        x.kind == Kind::index ? "i64" : "u8", {x}, [=](const Tensor& t) { return call(t, 0); }, reference(0));
  op.refuse({"[2]"}, [=] { call(reals({2}), 0); });
  return op;
}

OpCase diag_row() {
  OpCase op = row("diag", "(x, int64_t diagonal = 0)",
                  "a vector as a diagonal of a matrix of zeros; of a matrix its diagonal; 1: above the main one");
  const auto reference = [](int64_t k) {
    return [k](const Array& x) {
      const int64_t size = std::abs(k);
      if (x.shape.rank == 1)
        return tabulate(
            Dims{x.shape[0] + size, x.shape[0] + size},
            [&](const Dims& i) { return i[1] - i[0] == k ? x.at({std::min(i[0], i[1])}) : 0; }, x.kind);
      const int64_t down = k < 0 ? size : 0, right = k > 0 ? size : 0;
      return tabulate(
          Dims{std::min(x.shape[0] - down, x.shape[1] - right)},
          [&](const Dims& i) {
            return x.at({i[0] + down, i[0] + right});
          },
          x.kind);
    };
  };
  for (const Dims& shape : {Dims{0}, {1}, {2}, {5}, {4, 4}, {3, 5}, {5, 3}, {2, 6}, {60, 90}})
    for (int64_t k : {0, 1, -2}) {
      if (shape.rank == 2 && (shape[0] < -k || shape[1] < k)) continue;
      op.add(
            text("diagonal ", k), {op.draw.normal(shape)}, [=](const Tensor& x) { return diag(x, k); }, reference(k))
          .large = shape == Dims{60, 90};
    }
  for (const Array& x : {op.draw.index({3, 5}, 1000), op.draw.mask({4})})
    op.add(
        x.kind == Kind::index ? "i64" : "u8", {x}, [](const Tensor& t) { return diag(t); }, reference(0));
  op.refuse({"[2, 2, 2]"}, [] { diag(reals({2, 2, 2})); });
  op.refuse({"[2, 3]", "diagonal 4"}, [] { diag(reals({2, 3}), 4); });
  op.refuse({"[2, 3]", "diagonal -3"}, [] { diag(reals({2, 3}), -3); });
  return op;
}

OpCase meshgrid_row() {
  OpCase op = row("meshgrid", "(const std::vector<Tensor>& axes)", "y_i at [j_1, ..., j_k] is axes_i at j_i");
  for (const Dims& grid : shapes_and_large(1)) {
    Arrays axes;
    for (int64_t n : grid) axes.push_back(op.draw.normal({n}));
    const auto reference = [grid](const Arrays& x) {
      Arrays y;
      for (int d = 0; d < grid.rank; ++d) y.push_back(moved(x[d], grid, [d](const Dims& i) { return Dims{i[d]}; }));
      return y;
    };
    op.add("", axes, meshgrid, reference).large = grid == kLarge;
  }
  op.refuse({"[2, 3]", "rank 1"}, [] { meshgrid({reals({2}), reals({2, 3})}); });
  return op;
}

OpCase patchify_row() {
  OpCase op = row("patchify", "(images, int64_t patch)",
                  "[n, h, w, c] to [n, (h/p)(w/p), p p c]: rows of patches, inside a row by (row, column, channel)");
  const auto add = [&](int64_t n, int64_t high, int64_t wide, int64_t c, int64_t p) {
    const auto source = [=](const Dims& i) {
      const int64_t place = i[2] / c;
      return Dims{i[0], i[1] / wide * p + place / p, i[1] % wide * p + place % p, i[2] % c};
    };
    add_moved(
        op, text("patch ", p), {n, high * p, wide * p, c}, [=](const Tensor& x) { return patchify(x, p); },
        [=](const Array& x) {
          return moved(x, {n, high * wide, p * p * c}, source);
        })
        .large = n * high * wide * p * p * c > 20000;
  };
  for (int64_t n : {1, 2})
    for (int64_t high : {1, 2, 3})
      for (int64_t wide : {1, 2})
        for (int64_t p : {1, 2, 3}) add(n, high, wide, high == 2 ? 3 : 1, p);
  add(0, 1, 1, 1, 2);
  add(2, 0, 1, 1, 2);
  add(4, 7, 7, 3, 8);
  op.refuse({"[2, 4, 4]"}, [] { patchify(reals({2, 4, 4}), 2); });
  op.refuse({"[2, 4, 5, 1]", "patches of 2"}, [] { patchify(reals({2, 4, 5, 1}), 2); });
  op.refuse({"0"}, [] { patchify(reals({2, 4, 4, 1}), 0); });
  return op;
}

}  // namespace

std::vector<OpCase> arrange_cases() {
  const auto lower = "x where column - row <= diagonal, else 0 (last two dimensions)",
             upper = "x where column - row >= diagonal, else 0 (last two dimensions)";
  std::vector<OpCase> all;
  for (auto make : {slice_row, narrow_row, select_row, split_row, chunk_row, cat_row, stack_row, pad_sequence_row,
                    flip_row, pad_row, repeat_row, repeat_interleave_row})
    all.push_back(make());
  all.push_back(triangle_row("tril", lower, isonorm::tril, true));
  all.push_back(triangle_row("triu", upper, isonorm::triu, false));
  all.push_back(diag_row());
  all.push_back(meshgrid_row());
  all.push_back(patchify_row());
  return all;
}

}  // namespace isonorm::test
