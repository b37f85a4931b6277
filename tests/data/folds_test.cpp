// Cross-validation: the parts of k_folds().
#include <algorithm>

#include "core/tensor.h"
#include "io/data/loader.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {

std::vector<int64_t> examples_of(const data::Subset<data::TensorSet<1>>& part) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < part.size(); ++i) all.push_back(static_cast<int64_t>(part[i][0].item()));
  return all;
}

}  // namespace

TEST_CASE("k_folds: every example is in one test part, and in the training parts of the other folds") {
  std::vector<int64_t> numbers(23);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const data::TensorSet set(tensor(numbers));
  const auto folds = data::k_folds(set, 5, 3);
  REQUIRE(folds.size() == 5);
  std::vector<int64_t> tested;
  for (const auto& [train, test] : folds) {
    CHECK((test.size() == 4 || test.size() == 5));
    CHECK(train.size() + test.size() == 23);
    std::vector<int64_t> all = examples_of(train), part = examples_of(test);
    tested.insert(tested.end(), part.begin(), part.end());
    all.insert(all.end(), part.begin(), part.end());
    std::ranges::sort(all);
    CHECK(all == numbers);
  }
  CHECK(tested != numbers);  // shuffled
  std::ranges::sort(tested);
  CHECK(tested == numbers);
  CHECK(examples_of(data::k_folds(set, 5, 3)[0].test) == examples_of(folds[0].test));
  CHECK(examples_of(data::k_folds(set, 5, 4)[0].test) != examples_of(folds[0].test));
}

TEST_CASE("k_folds: one fold, or more folds than examples, is refused") {
  const data::TensorSet set(tensor({1, 2, 3}));
  CHECK_THROWS_WITH(data::k_folds(set, 1), Contains("k_folds: 1 folds of 3 examples"));
  CHECK_THROWS_WITH(data::k_folds(set, 4), Contains("k_folds: 4 folds of 3 examples"));
  CHECK(data::k_folds(set, 3).size() == 3);
}
