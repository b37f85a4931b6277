// Hidden tests of lab 1.
#include "labs/1_tensors.h"

#include "support/tests.h"

namespace course {
namespace {

const Test kViews(
    "the diagonal of a part of a tensor, and of a transposed one", 2,
    [] {
      const Tensor whole = random({6, 7}, 1), part = slice(slice(whole, 0, 2, 6), 1, 3, 7);
      for (const Tensor& x : {part, part.transpose()}) {
        const Tensor d = diagonal(x);
        for (int64_t i = 0; i < 4; ++i)
          check(d[i].item() == whole[2 + i][3 + i].item(), "diagonal: entry ", i, " is wrong");
      }
    },
    Seen::hidden);

const Test kLarge(
    "softmax of large and of very small entries", 1,
    [] {
      expect_close("softmax_by_hand", softmax_by_hand(tensor({{1000., 1000.}, {-1000., -1000.}})),
                   full({2, 2}, 0.5, {.dtype = DType::f64}));
      const Tensor x = random({2, 3, 4}, 3) * 500.0;
      expect_close("softmax_by_hand", softmax_by_hand(x), softmax(x, -1));
    },
    Seen::hidden);

const Test kDims(
    "three dimensions, and one row or column", 2,
    [] {
      const Tensor x = random({2, 3, 5}, 4);
      expect_close("without_mean", without_mean(x), recentre(x, -1));
      const Tensor a = random({1, 3}, 5), b = random({7, 3}, 6);
      expect_close("squared_distances", squared_distances(a, b), (a - b).square().sum(1).reshape({1, 7}));
      expect_close("one_hot_by_hand", one_hot_by_hand(tensor({0}), 1), tensor({{1.}}));
    },
    Seen::hidden);

}  // namespace
}  // namespace course
