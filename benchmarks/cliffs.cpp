#include "benchmarks/cliffs.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/kernel_table.h"
#include "benchmarks/measure.h"

namespace isonorm::bench {
namespace {

constexpr double kLimit = 1.5;
constexpr int kRounds = 9;
constexpr double kElements = 1 << 20;  // of an input; its rows follow from its width
constexpr int64_t kWidths[] = {63, 64, 127, 128, 192, 384, 768, 1000, 1024, 4096};
constexpr int64_t kRows[] = {63, 65, 127, 197, 1000, 4095};
constexpr int64_t kLengths[] = {17, 63, 65, 127, 197, 257, 500, 1000, 2047, 4095, 4096};
constexpr int64_t kWidthOfRows = 512;

int64_t next_multiple(int64_t n) { return (n + 63) / 64 * 64; }

struct Size {
  int64_t rows, width;
};

// Seconds of a size and of the regular one beside it, taken alternately, each over its work: medians.
struct PerElement {
  double odd, regular;
};
PerElement per_element(const KernelOp& op, DType dtype, Size odd, Size regular) {
  const Run runs[2] = {op.make(odd.rows, odd.width, dtype), op.make(regular.rows, regular.width, dtype)};
  std::vector<double> ms[2];
  for (int round = -1; round < kRounds; ++round)  // the first warms up
    for (int i = 0; i < 2; ++i) {
      const Times t = runs[i]();
      if (round >= 0) ms[i].push_back(t.forward_ms + t.backward_ms);
    }
  const auto work = [&](Size s) { return op.work(static_cast<double>(s.rows), static_cast<double>(s.width)); };
  return {1e6 * median(ms[0]) / work(odd), 1e6 * median(ms[1]) / work(regular)};
}

Size of_width(int64_t width) { return {static_cast<int64_t>(kElements) / width, width}; }
Size of_length(int64_t length) { return {std::max<int64_t>(1, (1 << 12) / length), length}; }

class Table {
 public:
  void head(const char* what, const int64_t* begin, const int64_t* end) {
    std::printf("\n%-26s", what);
    for (const int64_t* n = begin; n != end; ++n) std::printf(" %12lld", static_cast<long long>(*n));
    std::printf("\n");
  }
  void begin(const KernelOp& op, DType dtype) {
    std::printf("%-21.*s %4s", static_cast<int>(op.name.size()), op.name.data(), name_of(dtype));
  }
  // A multiple of 64 shows its time alone.
  void cell(const KernelOp& op, DType dtype, Size odd, Size regular) {
    const bool same = odd.rows == regular.rows && odd.width == regular.width;
    const PerElement t = per_element(op, dtype, odd, regular);
    const double ratio = t.odd / t.regular;
    if (same)
      std::printf(" %7.3f     ", t.regular);
    else
      std::printf(" %7.3f %4.2f%c", t.odd, ratio, ratio > kLimit ? '!' : ' ');
    std::fflush(stdout);
    if (!same) worst_ = std::max(worst_, ratio);
  }
  void end() { std::printf("\n"); }
  double worst() const { return worst_; }

 private:
  double worst_ = 0;
};

}  // namespace

bool print_cliffs() {
  constexpr DType dtypes[] = {DType::f32, DType::f64, DType::bf16};
  constexpr const char* by_width[] = {"add_norm_layer", "add_norm_rms", "layer_norm",    "rms_norm",
                                      "softmax",        "bias_gelu",    "cross_entropy", "linear"};
  Table table;
  std::printf(
      "ns per element, forward and backward (linear: per element and column; attention: per query, key and "
      "batch); then / that of the next multiple of 64\n");
  table.head("width, 2^20 elements", std::begin(kWidths), std::end(kWidths));
  for (const char* name : by_width)
    for (const DType dtype : dtypes) {
      table.begin(kernel_op(name), dtype);
      for (const int64_t w : kWidths) table.cell(kernel_op(name), dtype, of_width(w), of_width(next_multiple(w)));
      table.end();
    }
  table.head("rows, width 512", std::begin(kRows), std::end(kRows));
  for (const char* name : by_width)
    for (const DType dtype : dtypes) {
      table.begin(kernel_op(name), dtype);
      for (const int64_t r : kRows)
        table.cell(kernel_op(name), dtype, {r, kWidthOfRows}, {next_multiple(r), kWidthOfRows});
      table.end();
    }
  table.head("length, 4 heads of 64", std::begin(kLengths), std::end(kLengths));
  for (const DType dtype : dtypes) {
    table.begin(kernel_op("attention"), dtype);
    for (const int64_t t : kLengths)
      table.cell(kernel_op("attention"), dtype, of_length(t), of_length(next_multiple(t)));
    table.end();
  }
  std::printf("\nlargest ratio %.2f, limit %.1f\n", table.worst(), kLimit);
  return table.worst() <= kLimit;
}

}  // namespace isonorm::bench
