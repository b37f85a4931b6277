#include "support/tests.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

namespace course {
namespace {

struct Entry {
  const char* name;
  double points;
  std::function<double()> run;
  Seen seen;
};

// In a function, so that it exists before the static tests of any file.
std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

}  // namespace

void Test::add(const char* name, double points, std::function<double()> run, Seen seen) {
  entries().push_back({name, points, std::move(run), seen});
}

Tensor random(const Dims& shape, uint64_t seed) {
  Generator generator{seed};
  return randn(shape, {.dtype = DType::f64}, generator);
}

double deviation(const Tensor& a, const Tensor& b) {
  if (!a.defined() || a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double largest = 1, most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::abs(x[i] - y[i]));
    largest = std::max(largest, std::abs(y[i]));
  }
  return most / largest;
}

void expect_close(const char* what, const Tensor& got, const Tensor& expected, int64_t length) {
  check(got.defined(), what, ": the result is undefined");
  check(got.shape() == expected.shape(), what, ": the shape is ", got.shape(), ", expected ", expected.shape());
  check(got.dtype() == expected.dtype(), what, ": the dtype is ", got.dtype(), ", expected ", expected.dtype());
  const std::vector<double> entries = got.to_vector<double>(), wanted = expected.to_vector<double>();
  for (size_t i = 0; i < entries.size(); ++i)
    check(std::isfinite(entries[i]), what, ": entry ", i, " of ", entries.size(), " is ", entries[i], ", expected ",
          wanted[i]);
  const double eps = got.dtype() == DType::f64 ? 0x1p-52 : 0x1p-23;
  const double tolerance = 64 * eps * std::sqrt(static_cast<double>(length)), off = deviation(got, expected);
  check(off <= tolerance, what, ": off by ", off, " of the largest entry, the tolerance is ", tolerance);
}

}  // namespace course

// Without arguments: prints a line per test. With a test's number: runs it and prints "share X"; a second argument
// replaces the word "share".
int main(int argc, char** argv) {
  if (argc < 2) {
    for (const course::Entry& e : course::entries())
      std::printf("%g\t%s\t%s\n", e.points, e.seen == course::Seen::hidden ? "hidden" : "visible", e.name);
    return 0;
  }
  double share = 0;
  try {
    share = course::entries().at(std::strtoul(argv[1], nullptr, 10)).run();
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
  }
  std::printf("\n%s %.6f\n", argc > 2 ? argv[2] : "share", share);
}
