// Visible tests of lab 1.
#include "labs/1_tensors.h"

#include "support/tests.h"

namespace course {
namespace {

const Test kMean("rows without their mean", 1, [] {
  expect_close("without_mean", without_mean(tensor({{1., 2., 6.}, {0., 0., 3.}})),
               tensor({{-2., -1., 3.}, {-1., -1., 2.}}));
});

const Test kDiagonal("the diagonal is a view", 2, [] {
  const Tensor x = random({4, 4}, 1), d = diagonal(x);
  expect_close("diagonal", d, tensor({x[0][0].item(), x[1][1].item(), x[2][2].item(), x[3][3].item()}));
  fill(d, 7);
  check(x[2][2].item() == 7, "a write to the diagonal does not change x: it is a copy");
});

const Test kDistances("squared distances", 1, [] {
  expect_close("squared_distances",
               squared_distances(tensor({{0., 0.}, {3., 4.}}), tensor({{0., 0.}, {3., 0.}, {0., 4.}})),
               tensor({{0., 9., 16.}, {25., 16., 9.}}));
});

const Test kSoftmax("softmax", 1, [] {
  const Tensor x = random({3, 5}, 2);
  expect_close("softmax_by_hand", softmax_by_hand(x), softmax(x, -1));
});

const Test kOneHot("one-hot rows", 1, [] {
  expect_close("one_hot_by_hand", one_hot_by_hand(tensor({2, 0}), 3), tensor({{0., 0., 1.}, {1., 0., 0.}}));
});

}  // namespace
}  // namespace course
