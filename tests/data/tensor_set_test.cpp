// Loaders over tensors, parts of sets and sets of one's own.
#include "io/data/tensor_set.h"

#include <map>
#include <numeric>
#include <set>

#include "autograd/ops/random.h"
#include "core/random.h"
#include "core/view.h"
#include "io/data/loader.h"
#include "io/data/text.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::data;
using Catch::Matchers::Contains;

namespace {

std::vector<int64_t> ids(const Tensor& x) { return x.to_vector<int64_t>(); }
Tensor counted(int64_t n) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return from_vector(all, {n});
}
// Rows [i, i + 1/2] of f32.
Tensor rows(int64_t n) {
  std::vector<float> all;
  for (int64_t i = 0; i < n; ++i) all.insert(all.end(), {static_cast<float>(i), static_cast<float>(i) + .5f});
  return from_vector(all, {n, 2});
}

// Item i: i, and numbers that it draws.
struct Noisy {
  int64_t n;
  int64_t size() const { return n; }
  std::pair<Tensor, Tensor> operator[](int64_t i) const {
    return {from_vector(std::vector{i}, {}), rand({3}, {DType::f64})};
  }
};
struct Rich {
  Tensor x;
  std::vector<Tensor> more;
};
struct RichSet {
  int64_t size() const { return 4; }
  Rich operator[](int64_t i) const {
    const auto f = static_cast<float>(i);
    return {from_vector(std::vector{f, -f}, {2}), {from_vector(std::vector{i}, {1}), from_vector(std::vector{i}, {})}};
  }
};
// Sequences 0, 1, .. of i + 1 tokens, padded with -1.
struct Padded {
  int64_t size() const { return 4; }
  Tensor gather(std::span<const int64_t> indices) const {
    const int64_t longest = *std::ranges::max_element(indices) + 1;
    std::vector<int64_t> all;
    for (const int64_t i : indices)
      for (int64_t t = 0; t < longest; ++t) all.push_back(t <= i ? t : -1);
    return from_vector(all, {std::ssize(indices), longest});
  }
};
struct Uneven {
  int64_t size() const { return 2; }
  Tensor operator[](int64_t i) const { return zeros_of(i + 1); }
  static Tensor zeros_of(int64_t n) { return from_vector(std::vector<float>(static_cast<size_t>(n)), {n}); }
};
// For RowLoader.
struct NoisyRows {
  std::pair<Tensor, Tensor> batch(int64_t rows, int64_t length, int64_t) const {
    return {rand({rows, length}, {DType::f64}), rand({rows}, {DType::f64})};
  }
  int64_t batches(int64_t, int64_t) const { return 4; }
};

template <class Set>
concept TakesTemporary = requires {
  RowLoader<Set>(std::declval<Set>(), RowLoaderOptions{});
};
template <class Set>
concept TakesNamed = requires(const Set& set) {
  RowLoader<Set>(set, RowLoaderOptions{});
};

}  // namespace

TEST_CASE("tensor set: batches have the same rows of all tensors, for any dtype and stride") {
  const Tensor x = rows(10), y = counted(10),
               z = detached::transpose(detached::contiguous(detached::transpose(rows(10), 0, 1)), 0, 1);
  CHECK(TensorSet(x, y).size() == 10);
  const auto [x3, y3] = TensorSet(x, y)[3];
  CHECK((x3.shape() == Dims{2} && x3.to_vector<float>() == std::vector{3.f, 3.5f}));
  CHECK((y3.shape() == Dims{} && y3.item() == 3));
  Loader loader(TensorSet(x, y, z), {.rows = 3, .seed = 1});
  std::set<int64_t> seen;
  for (const auto& [a, b, c] : loader) {
    CHECK((a.shape() == Dims{3, 2} && b.shape() == Dims{3} && c.shape() == Dims{3, 2}));
    for (int64_t r = 0; r < 3; ++r) {
      const int64_t i = ids(b)[static_cast<size_t>(r)];
      seen.insert(i);
      CHECK(a.to_vector<float>()[static_cast<size_t>(2 * r)] == static_cast<float>(i));
      CHECK(a.to_vector<float>()[static_cast<size_t>(2 * r + 1)] == static_cast<float>(i) + .5f);
    }
    CHECK(c.to_vector<float>() == a.to_vector<float>());
  }
  CHECK(seen.size() == 9);
  CHECK_THROWS_WITH(TensorSet(x, counted(9)), Contains("tensor 1 has 9 rows, tensor 0 has 10"));
  CHECK_THROWS_WITH(TensorSet(from_vector(std::vector{1.f}, {})), Contains("shape []"));
  CHECK_THROWS_WITH(TensorSet(x, Tensor()), Contains("tensor 1 is undefined"));
  CHECK_THROWS_WITH(TensorSet(x)[10], Contains("row 10"));
}

TEST_CASE("loader: drop_last = false gives a smaller last batch, also if rows exceed the set") {
  const TensorSet set(counted(10));
  const auto sizes = [&](LoaderOptions o) {
    std::vector<int64_t> all;
    for (const auto& [x] : Loader(set, o)) all.push_back(x.size(0));
    return all;
  };
  using Sizes = std::vector<int64_t>;
  CHECK(sizes({.rows = 4}) == Sizes{4, 4});
  CHECK(sizes({.rows = 4, .drop_last = false}) == Sizes{4, 4, 2});
  CHECK(sizes({.rows = 4, .shuffle = false}) == Sizes{4, 4, 2});
  CHECK(sizes({.rows = 4, .shuffle = false, .drop_last = true}) == Sizes{4, 4});
  CHECK(sizes({.rows = 64, .drop_last = false}) == Sizes{10});
  CHECK_THROWS_WITH(Loader(set, {.rows = 64}), Contains("64 rows") && Contains("10; with drop_last = false"));
}

TEST_CASE("loader: an own set's items are stacked: a pair, a struct with a vector, a vector of pairs, its own gather") {
  Loader rich(RichSet(), {.rows = 3, .shuffle = false});
  const Rich b = rich.next();
  CHECK((b.x.shape() == Dims{3, 2} && b.x.to_vector<float>() == std::vector<float>{0, -0.f, 1, -1, 2, -2}));
  CHECK((b.more.size() == 2 && b.more[0].shape() == Dims{3, 1} && b.more[1].shape() == Dims{3}));
  CHECK(ids(b.more[1]) == std::vector<int64_t>{0, 1, 2});
  CHECK(rich.next().x.shape() == Dims{1, 2});
  const std::vector<std::pair<Tensor, Tensor>> pairs = {{rows(1), counted(2)}, {rows(1), counted(2)}};
  const auto [x, y] = Loader(pairs, {.rows = 2}).next();
  CHECK((x.shape() == Dims{2, 1, 2} && y.shape() == Dims{2, 2}));
  Loader padded(Padded(), {.rows = 2, .shuffle = false});
  CHECK(ids(padded.next()) == std::vector<int64_t>{0, -1, 0, 1});
  CHECK(padded.next().shape() == Dims{2, 4});
  CHECK_THROWS_WITH(Loader(Uneven(), {.rows = 2, .shuffle = false}).next(),
                    Contains("tensor 0 of item 1 is f32 [2], item 0's is f32 [1]"));
}

TEST_CASE("subset, random split: parts without a common example, by sizes or by fractions") {
  const TensorSet set(counted(10));
  CHECK(Subset(set, {7, 7, 2})[1][0].item() == 7);
  CHECK(ids(Loader(Subset(set, {7, 7, 2}), {.rows = 3, .shuffle = false}).next()[0]) == std::vector<int64_t>{7, 7, 2});
  CHECK_THROWS_WITH(Subset(set, {10}), Contains("index 10 of a set of 10"));
  const auto all_of = [](const auto& part) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < part.size(); ++i) all.push_back(static_cast<int64_t>(part[i][0].item()));
    return all;
  };
  const auto [a, b, c] = random_split(set, {0.5, 0.25, 0.25}, 4);
  CHECK((a.size() == 5 && b.size() == 3 && c.size() == 2));  // ends at 5, round(7.5) and 10
  std::set<int64_t> seen;
  for (const auto* part : {&a, &b, &c})
    for (const int64_t i : all_of(*part)) seen.insert(i);
  CHECK(seen.size() == 10);
  const auto [d, e] = random_split(set, {5, 5}, 4);
  CHECK(all_of(d) == all_of(a));
  CHECK(all_of(random_split(set, {5, 5}, 5)[0]) != all_of(d));
  CHECK_THROWS_WITH(random_split(set, {5, 4}), Contains("parts of 9 examples, and the set has 10"));
  CHECK_THROWS_WITH(random_split(set, {0.5, 0.4}), Contains("fractions sum to 0.9"));
  // Images, too, with the options of images.
  const LabelledImages images{from_vector(std::vector<uint8_t>(60, 255), {10, 2, 3}), counted(10)};
  const auto [train, test] = random_split(images, {8, 2}, 1);
  const Batch batch = Loader(train, {.rows = 8, .scale = {.mean = {0}, .std = {2}}}).next();
  CHECK((batch.images.shape() == Dims{8, 2, 3, 1} && batch.images.to_vector<float>()[0] == 0.5f));
}

TEST_CASE("loader: weights draw examples with replacement, in proportion") {
  const std::vector<double> weights = {0, 1, 2, 0, 5};
  Loader loader(TensorSet(counted(5)), {.rows = 5, .seed = 3, .weights = weights, .prefetch = 0});
  CHECK(loader.steps_per_epoch() == 1);
  std::map<int64_t, double> count;
  const int epochs = 1600;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (const auto& [x] : loader)
      for (const int64_t i : ids(x)) ++count[i];
  CHECK((count.size() == 3 && count[0] == 0 && count[3] == 0));
  double chi = 0;  // 2 degrees of freedom: below 13.8 with probability 0.999; the seed is fixed
  for (const int i : {1, 2, 4}) {
    const double expected = 5 * epochs * weights[static_cast<size_t>(i)] / 8;
    chi += (count[i] - expected) * (count[i] - expected) / expected;
  }
  CHECK(chi < 13.8);
  const TensorSet set(counted(2));
  CHECK_THROWS_WITH(Loader(set, {.rows = 1, .weights = {1}}), Contains("1 weights for 2 examples"));
  CHECK_THROWS_WITH(Loader(set, {.rows = 1, .weights = {1, -1}}), Contains("weight 1 is -1"));
  CHECK_THROWS_WITH(Loader(set, {.rows = 1, .weights = {0, 0}}), Contains("sum to 0"));
  CHECK_THROWS_WITH(Loader(set, {.rows = 1, .shuffle = false, .weights = {1, 1}}), Contains("without shuffle"));
}

TEST_CASE("loader: pictures of numbers are refused at construction, and options of pictures without pictures") {
  const LabelledImages floats{detached::view(rows(4), {4, 2, 1}), counted(4)};
  CHECK_THROWS_WITH(Loader(floats, {.rows = 2}),
                    Contains("images are f32 and labels i64, expected u8") && Contains("data::TensorSet"));
  CHECK_THROWS_WITH(Loader(TensorSet(rows(4)), {.rows = 2, .augment = {.flip = true}}),
                    Contains("for data::LabelledImages"));
}

TEST_CASE(
    "loader: a set's random numbers depend only on seed and batch, for each prefetch, after seek and for batch()") {
  manual_seed(11);
  const Generator before = default_generator();
  const auto draws = [](auto& loader, int64_t from, int n) {
    std::vector<double> all;
    loader.seek(from);
    for (int i = 0; i < n; ++i)
      for (const double v : loader.next().second.template to_vector<double>()) all.push_back(v);
    return all;
  };
  const auto check_draws = [&](const auto& make) {
    auto reference = make(0, 5);
    const std::vector<double> expected = draws(reference, 0, 6), later = draws(reference, 3, 2);
    CHECK(std::set<double>(expected.begin(), expected.end()).size() == expected.size());  // two epochs, no number twice
    for (const int prefetch : {0, 1, 2}) {
      auto loader = make(prefetch, 5), other = make(prefetch, 6);
      manual_seed(static_cast<uint64_t>(prefetch));  // the caller's state means nothing
      CHECK(draws(loader, 0, 6) == expected);
      CHECK(draws(loader, 3, 2) == later);
      CHECK(std::equal(later.begin(), later.end(), expected.begin() + std::ssize(expected) / 6 * 3));
      CHECK(loader.batch(0).second.template to_vector<double>() ==
            std::vector<double>(expected.begin(), expected.begin() + std::ssize(expected) / 6));
      CHECK(draws(other, 0, 6) != expected);
    }
  };
  check_draws(
      [](int prefetch, uint64_t seed) { return Loader(Noisy{12}, {.rows = 4, .seed = seed, .prefetch = prefetch}); });
  const NoisyRows rows;
  check_draws([&](int prefetch, uint64_t seed) {
    return RowLoader<NoisyRows>(rows, {.rows = 4, .length = 2, .prefetch = prefetch, .seed = seed});
  });
  manual_seed(11);
  Loader(Noisy{4}, {.rows = 4, .prefetch = 0}).next();
  CHECK(default_generator() == before);
}

TEST_CASE("loaders: a set that is kept by reference cannot be a temporary") {
  static_assert(TakesNamed<Text>);
  static_assert(!TakesTemporary<Text>);
  static_assert(!TakesTemporary<const Text>);
  Loader loader(TensorSet(counted(4)), {.rows = 2});  // keeps a copy
  CHECK(loader.next()[0].shape() == Dims{2});
}
