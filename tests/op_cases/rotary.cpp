// Row of rotary position embedding.
#include "autograd/ops/rotary.h"

#include <cmath>
#include <complex>

#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

// Multiplies pairs, as complex numbers, by e^(i t base^(-2i/size)).
Array turned(const Array& x, const RotaryOptions& o) {
  const int rank = x.shape.rank;
  const int64_t size = x.shape[rank - 1], heads = o.heads ? o.heads : x.shape[rank - 2];
  return tabulate(x.shape, [&](const Dims& at) {
    if (at[rank - 2] >= heads) return x.at(at);
    const int64_t e = at[rank - 1], pair = o.halves ? e % (size / 2) : e / 2;
    const bool is_second = o.halves ? e >= size / 2 : e % 2 == 1;
    Dims first = at, second = at;
    first[rank - 1] = o.halves ? pair : 2 * pair;
    second[rank - 1] = o.halves ? size / 2 + pair : 2 * pair + 1;
    const long double frequency =
        std::pow(static_cast<long double>(o.base), -2 * static_cast<long double>(pair) / size);
    const std::complex<long double> z =
        std::complex<long double>(x.at(first), x.at(second)) * std::polar(1.0L, (o.first + at[rank - 3]) * frequency);
    return static_cast<double>(is_second ? z.imag() : z.real());
  });
}

}  // namespace

std::vector<OpCase> rotary_cases() {
  OpCase op = row_of("Rotary embedding", "rotary", "(x, RotaryOptions options = {})",
                     "elements 2i, 2i + 1 (or i, size/2 + i) of a head at position t turned by t base^(-2i/size)",
                     tolerance::product);
  const auto add = [&](const Dims& shape, const RotaryOptions& o) -> Sample& {
    Sample& s = op.add(
        text("base ", o.base, o.heads ? text(" heads ", o.heads) : "", o.first ? text(" from ", o.first) : "",
             o.halves ? " halves" : ""),
        {op.draw.normal(shape)}, [=](const Tensors& t) { return rotary(t[0], o); },
        [=](const Arrays& a) { return turned(a[0], o); });
    const auto time = static_cast<double>(o.first + shape[shape.rank - 3]);
    s.length = time * time;  // an angle of up to `time` has a rounding error of time eps
    return s;
  };
  for (const Dims& shape : {Dims{1, 1, 2}, Dims{3, 1, 4}, Dims{5, 2, 6}, Dims{2, 4, 3, 2}, Dims{3, 7, 2, 8},
                            Dims{2, 1, 3, 2, 10}, Dims{1, 9, 1, 34}, Dims{0, 3, 2, 4}})
    for (double base : {10000.0, 100.0, 3.0}) {
      add(shape, {.base = base});
      add(shape, {.base = base, .heads = 1});
      add(shape, {.base = base, .heads = 1, .halves = true});
      add(shape, {.base = base, .heads = 1, .first = 6});
    }
  add({3, 65, 6, 32}, {.halves = true}).large = true;
  add({3, 65, 6, 32}, {}).large = true;
  add({3, 65, 6, 32}, {.heads = 4}).large = true;
  add({3, 65, 6, 32}, {.first = 3, .halves = true}).large = true;
  op.refuse({"[2, 4]"}, [] { rotary(reals({2, 4})); });
  op.refuse({"size 3", "[5, 2, 3]"}, [] { rotary(reals({5, 2, 3})); });
  op.refuse({"3 heads", "[5, 2, 4]"}, [] { rotary(reals({5, 2, 4}), {.heads = 3}); });
  op.refuse({"-1"}, [] { rotary(reals({5, 2, 4}), {.base = -1}); });
  op.refuse({"first position is -1"}, [] { rotary(reals({5, 2, 4}), {.first = -1}); });
  op.refuse({"first position is 4294967292", "4294967291"}, [] { rotary(reals({5, 2, 4}), {.first = 4294967292}); });
  op.refuse({"i64"}, [] { rotary(integers({5, 2, 4})); });
  return {op};
}

}  // namespace isonorm::test
