#include "tests/support/draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace isonorm::test {

Draw::Draw(std::string_view op) {
  uint64_t seed = 14695981039346656037u;  // FNV-1a
  for (char c : op) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211u;
  random_.seed(seed);
}

double Draw::unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

int64_t Draw::integer(int64_t below) { return static_cast<int64_t>(unit() * static_cast<double>(below)); }

Array Draw::uniform(const Dims& shape, double lo, double hi, const std::vector<double>& kinks) {
  const double margin = 0.03 * (hi - lo);
  return tabulate(shape, [&](const Dims&) {
    while (true) {
      const double x = lo + (hi - lo) * unit();
      if (std::none_of(kinks.begin(), kinks.end(), [&](double k) { return std::abs(x - k) < margin; })) return x;
    }
  });
}

Array Draw::normal(const Dims& shape, double mean, double deviation) {
  return tabulate(shape, [&](const Dims&) {
    const double u = unit(), v = unit();
    return mean + deviation * std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
  });
}

Array Draw::distinct(const Dims& shape, double gap) {
  Array a(shape);
  const int64_t n = a.size();
  for (int64_t i = 0; i < n; ++i) a.v[i] = gap * (static_cast<double>(i) - static_cast<double>(n / 2) + 0.5);
  for (int64_t i = n - 1; i > 0; --i) std::swap(a.v[i], a.v[integer(i + 1)]);
  return a;
}

Array Draw::index(const Dims& shape, int64_t below) {
  return tabulate(
      shape, [&](const Dims&) { return static_cast<double>(integer(below)); }, Kind::index);
}

Array Draw::mask(const Dims& shape) {
  return tabulate(
      shape, [&](const Dims&) { return static_cast<double>(integer(2)); }, Kind::mask);
}

bool is_empty(const Dims& shape) { return std::count(shape.begin(), shape.end(), 0) > 0; }

std::vector<Dims> shapes(int min_rank, int max_rank) {
  static const std::vector<std::vector<Dims>> by_rank = {
      {Dims{}},
      {{1}, {2}, {3}, {7}, {17}, {67}, {0}},
      {{1, 1}, {1, 5}, {4, 1}, {2, 3}, {5, 17}, {3, 0}, {0, 2}},
      {{1, 1, 1}, {2, 3, 4}, {1, 3, 1}, {3, 1, 5}, {2, 0, 3}, {4, 5, 2}},
      {{2, 2, 2, 2}, {1, 3, 2, 1}, {3, 1, 2, 4}, {2, 3, 0, 1}},
      {{2, 1, 2, 1, 3}, {1, 2, 2, 2, 2}, {2, 2, 1, 3, 1}}};
  std::vector<Dims> chosen;
  for (int rank = min_rank; rank <= max_rank; ++rank)
    chosen.insert(chosen.end(), by_rank[rank].begin(), by_rank[rank].end());
  return chosen;
}

std::vector<std::pair<Dims, Dims>> shape_pairs() {
  std::vector<std::pair<Dims, Dims>> pairs;
  for (const Dims& s : shapes()) pairs.push_back({s, s});
  const std::pair<Dims, Dims> flat[] = {{{2, 3}, {3}},    {{3}, {2, 3}}, {{2, 1}, {1, 3}}, {{}, {2, 3}},
                                        {{4, 2}, {}},     {{1}, {4}},    {{5}, {1}},       {{0, 3}, {3}},
                                        {{2, 3}, {1, 1}}, {{3, 1}, {0}}, {{67}, {2, 1}}};
  const std::pair<Dims, Dims> deep[] = {{{2, 3, 4}, {3, 1}},       {{2, 1, 4}, {3, 1}},
                                        {{5, 1, 2}, {5, 3, 1}},    {{1, 2, 1, 3}, {2, 1, 2, 1, 1}},
                                        {{2, 2, 2, 2}, {2, 1, 2}}, {{2, 3, 1, 2, 1}, {3, 2, 1, 3}}};
  pairs.insert(pairs.end(), std::begin(flat), std::end(flat));
  pairs.insert(pairs.end(), std::begin(deep), std::end(deep));
  return pairs;
}

}  // namespace isonorm::test
