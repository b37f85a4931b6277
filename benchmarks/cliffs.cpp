// The table over odd sizes.
#include <algorithm>
#include <cstdio>
#include <span>

#include "benchmarks/kernel_table.h"
#include "core/formulas/round_up.h"

namespace isonorm::bench {
namespace {

constexpr double kLimit = 1.5;
constexpr int kRounds = 9;  // at least; more until they have taken kLeast ms
constexpr double kLeast = 30;
constexpr double kElements = 1 << 20;  // elements of an input; the number of rows follows from the width
constexpr int64_t kWidths[] = {63, 64, 127, 128, 192, 384, 768, 1000, 1024, 4096};
constexpr int64_t kRows[] = {63, 65, 127, 197, 1000, 4095};
constexpr int64_t kLengths[] = {16, 17, 63, 65, 127, 197, 257, 500, 1000, 2047, 4095, 4096};

struct Size {
  int64_t rows, width;
};

// ns per element for an odd size and for the regular size next to it, measured alternately. Takes the minimum of the
// rounds: other work on the machine can only lengthen times this short.
struct PerElement {
  double odd, regular;
};
PerElement per_element(const KernelOp& op, DType dtype, Size odd, Size regular) {
  const Size sizes[2] = {odd, regular};
  const Run runs[2] = {op.make(odd.rows, odd.width, {dtype}), op.make(regular.rows, regular.width, {dtype})};
  double least[2] = {1e300, 1e300}, spent = 0;
  for (int round = -1; round < kRounds || spent < kLeast; ++round)  // the first round warms up
    for (int i = 0; i < 2; ++i) {
      const Times t = runs[i]();
      const double ms = t.forward_ms + t.backward_ms;
      if (round >= 0) least[i] = std::min(least[i], ms);
      spent += ms;
    }
  const auto ns = [&](int i) {
    return 1e6 * least[i] / op.work(static_cast<double>(sizes[i].rows), static_cast<double>(sizes[i].width));
  };
  return {ns(0), ns(1)};
}

Size of_width(int64_t width) { return {static_cast<int64_t>(kElements) / width, width}; }
Size of_rows(int64_t rows) { return {rows, 512}; }
Size of_length(int64_t length) { return {std::max<int64_t>(1, (1 << 12) / length), length}; }

// Prints a line per op and dtype. `shape` makes a size of each of `numbers`. Returns the largest ratio.
double print(const char* title, std::span<const char* const> ops, std::span<const int64_t> numbers,
             Size (*shape)(int64_t)) {
  std::printf("\n%-26s", title);
  for (const int64_t n : numbers) std::printf(" %12lld", static_cast<long long>(n));
  double largest = 0;
  for (const char* name : ops)
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      std::printf("\n%-21s %4s", name, name_of(dtype));
      for (const int64_t n : numbers) {
        const PerElement t = per_element(kernel_op(name), dtype, shape(n), shape(round_up(n, 64)));
        const double ratio = n == round_up(n, 64) ? 1 : t.odd / t.regular;
        std::printf(" %7.3f %4.2f%c", t.odd, ratio, ratio > kLimit ? '!' : ' ');
        std::fflush(stdout);
        largest = std::max(largest, ratio);
      }
    }
  std::printf("\n");
  return largest;
}

}  // namespace

bool print_cliffs() {
  constexpr const char* rowwise[] = {"add_norm_layer", "add_norm_rms", "layer_norm",    "rms_norm",
                                     "softmax",        "gelu",         "cross_entropy", "linear"};
  constexpr const char* attention[] = {"attention"};
  std::printf(
      "ns per element, forward and backward (linear: per row and weight; attention: per query, key and batch); "
      "then / the time at the next multiple of 64\n");
  const double largest = print("width, 2^20 elements", rowwise, kWidths, of_width);
  print("rows, width 512", rowwise, kRows, of_rows);
  print("length, 4 heads of 64", attention, kLengths, of_length);
  std::printf("\nlargest ratio of a width %.2f, limit %.1f\n", largest, kLimit);
  return largest <= kLimit;
}

}  // namespace isonorm::bench
