// Rows of ops that move entries: rolled, mirrored, index by index, in windows.
#include <cstdlib>

#include "autograd/ops/shape.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

OpCase row(std::string name, std::string parameters, std::string formula) {
  return row_of("Cutting and joining", std::move(name), parameters, std::move(formula));
}

// source(index in the result) is the index in x.
template <class Run, class Source>
void add(OpCase& op, const std::string& label, const Dims& shape, const Dims& to, Run run, Source source) {
  add_moved(op, label, shape, run, [=](const Array& x) { return moved(x, to, source); });
}

OpCase roll_row() {
  OpCase op = row("roll", "(x, const std::vector<int64_t>& shifts, const std::vector<int>& dims)",
                  "entry i of dims_k at i + shifts_k, those that pass the end at the beginning");
  for (const Dims& shape : shapes_and_large(0)) {
    std::vector<std::pair<std::vector<int64_t>, std::vector<int>>> choices = {{{}, {}}};
    if (shape.rank > 0) choices.push_back({{1}, {-1}}), choices.push_back({{-7}, {0}}), choices.push_back({{0}, {0}});
    if (shape.rank > 1) choices.push_back({{2, 1}, {1, 0}});
    if (shape.rank > 1) choices.push_back({{1, 1}, {1, 1}});
    for (const auto& [shifts, dims] : choices) {
      std::string label;
      for (size_t k = 0; k < dims.size(); ++k) label += text(" by ", shifts[k], " dim ", dims[k]);
      add(
          op, label, shape, shape, [shifts = shifts, dims = dims](const Tensor& x) { return roll(x, shifts, dims); },
          [=, shifts = shifts, dims = dims](Dims i) {
            for (size_t k = 0; k < dims.size(); ++k) {
              const int d = dims[k] < 0 ? dims[k] + shape.rank : dims[k];
              for (int64_t s = 0; s < std::abs(shifts[k]); ++s)
                i[d] = shifts[k] > 0 ? (i[d] == 0 ? shape[d] - 1 : i[d] - 1) : (i[d] + 1 == shape[d] ? 0 : i[d] + 1);
            }
            return i;
          });
    }
  }
  op.refuse({"2 shifts", "1 dimensions"}, [] { roll(reals({2}), {1, 1}, {0}); });
  op.refuse({"dimension 1", "rank 1"}, [] { roll(reals({2}), {1}, {1}); });
  return op;
}

OpCase pad_reflect_row() {
  OpCase op = row("pad_reflect", "(x, const std::vector<std::pair<int64_t, int64_t>>& amounts)",
                  "x around which it is mirrored at its first and last entries of the last dimensions");
  for (const Dims& shape : shapes_and_large(0)) {
    std::vector<std::vector<std::pair<int64_t, int64_t>>> choices = {{}};
    if (shape.rank > 0 && shape[shape.rank - 1] > 0) {
      const int64_t most = shape[shape.rank - 1] - 1;
      choices.push_back({{most, most / 2}});
      if (shape.rank > 1 && shape[shape.rank - 2] > 2) choices.push_back({{1, 2}, {0, most}});
    }
    for (const auto& amounts : choices) {
      Dims to = shape;
      const int first = shape.rank - static_cast<int>(amounts.size());
      for (size_t k = 0; k < amounts.size(); ++k)
        to[first + static_cast<int>(k)] += amounts[k].first + amounts[k].second;
      add(
          op, text(amounts.size(), " dimensions"), shape, to,
          [amounts](const Tensor& x) { return pad_reflect(x, amounts); },
          [=](Dims i) {
            for (size_t k = 0; k < amounts.size(); ++k) {
              const int d = first + static_cast<int>(k);
              const int64_t last = shape[d] - 1, at = std::abs(i[d] - amounts[k].first);
              i[d] = at > last ? 2 * last - at : at;
            }
            return i;
          });
    }
  }
  op.refuse({"2 pairs", "[2]"}, [] { pad_reflect(reals({2}), {{1, 1}, {1, 1}}); });
  op.refuse({"2", "[0, 2)", "[2]"}, [] { pad_reflect(reals({2}), {{0, 2}}); });
  op.refuse({"-1"}, [] { pad_reflect(reals({2}), {{-1, 1}}); });
  return op;
}

OpCase unbind_row() {
  OpCase op = row("unbind", "(x, int dim = 0)", "the entries of dim, each without it");
  for (const Dims& shape : shapes_and_large(1))
    for (int d = 0; d < shape.rank; ++d) {
      if (shape[d] == 0 || (shape == kLarge && d == 2)) continue;
      const int dim = d % 2 ? d - shape.rank : d;
      Sample& s = op.add(
          text("dim ", dim), {op.draw.normal(shape)}, [=](const Tensor& x) { return unbind(x, dim); },
          [=](const Array& x) {
            Arrays parts;
            for (int64_t k = 0; k < shape[d]; ++k)
              parts.push_back(moved(x, removed(shape, d), [=](const Dims& i) { return inserted(i, d, k); }));
            return parts;
          });
      s.large = shape == kLarge;
    }
  op.refuse({"dimension 1", "rank 1"}, [] { unbind(reals({2}), 1); });
  return op;
}

OpCase unfold_row() {
  OpCase op =
      row("unfold", "(x, int dim, int64_t size, int64_t step)",
          "windows of `size` entries of dim, `step` from one to the next; their entries are a new last dimension");
  for (const Dims& shape : shapes_and_large(1, 4))
    for (int d = 0; d < shape.rank; ++d)
      for (int64_t size : {int64_t{1}, int64_t{3}, shape[d]})
        for (int64_t step : {1, 2, 5}) {
          if (size > shape[d] || size < 1 || (shape == kLarge && size > 3)) continue;
          if (size != 3 && size == shape[d] && step > 1) continue;
          const int dim = d % 2 ? d - shape.rank : d;
          Dims to = shape;
          to[d] = 0;
          for (int64_t at = 0; at + size <= shape[d]; at += step) ++to[d];
          to.push_back(size);
          add(
              op, text("dim ", dim, " size ", size, " step ", step), shape, to,
              [=](const Tensor& x) { return unfold(x, dim, size, step); },
              [=](Dims i) {
                i[d] = i[d] * step + i[i.rank - 1];
                --i.rank;
                return i;
              });
        }
  op.refuse({"3 entries", "dimension 0", "[2]"}, [] { unfold(reals({2}), 0, 3, 1); });
  op.refuse({"step 0"}, [] { unfold(reals({2}), 0, 1, 0); });
  op.refuse({"dimension 1", "rank 1"}, [] { unfold(reals({2}), 1, 1, 1); });
  op.refuse({"[1, 1, 1, 1, 1, 1, 1, 1]", "8"}, [] { unfold(reals({1, 1, 1, 1, 1, 1, 1, 1}), 0, 1, 1); });
  return op;
}

}  // namespace

std::vector<OpCase> window_cases() { return {roll_row(), pad_reflect_row(), unbind_row(), unfold_row()}; }

}  // namespace isonorm::test
