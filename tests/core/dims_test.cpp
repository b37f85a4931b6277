// Indices of shapes and lists: they count from the end if negative, and are checked.
#include "core/dims.h"

#include "core/checked_vector.h"
#include "core/tensor.h"
#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("sizes count from the end, and an index out of range is refused") {
  const Tensor q = empty({2, 8, 16});
  CHECK(q.shape()[-1] == 16);
  CHECK(q.shape()[-3] == 2);
  CHECK(q.strides()[-2] == 16);
  for (int d = 0; d < 3; ++d) CHECK(q.shape()[d - 3] == q.shape()[d]);
  CHECK_THROWS_WITH(q.shape()[3], "shape: index 3 is out of range for [2, 8, 16]");
  CHECK_THROWS_WITH(q.shape()[-4], "shape: index -4 is out of range for [2, 8, 16]");
  CHECK_THROWS_WITH(q.shape()[int64_t{1} << 32], "shape: index 4294967296 is out of range for [2, 8, 16]");
  CHECK_THROWS_WITH(empty({}).shape()[0], "shape: index 0 is out of range for []");
  CHECK_THROWS_WITH(empty({}).shape()[-1], "shape: index -1 is out of range for []");

  Dims shape = q.shape();
  shape[-1] = 5;
  CHECK(shape == Dims{2, 8, 5});
  CHECK_THROWS_WITH(shape[3] = 1, "shape: index 3 is out of range for [2, 8, 5]");
  CHECK(shape == Dims{2, 8, 5});
}

TEST_CASE("entries of a list count from the end, and an index out of range is refused") {
  CheckedVector<int> list{7, 8, 9};
  CHECK(list[-1] == 9);
  CHECK(list[-3] == 7);
  list[-2] = 5;
  const CheckedVector<int>& constant = list;
  CHECK(constant[1] == 5);
  CHECK_THROWS_WITH(list[3], "list: index 3 is out of range for 3 entries");
  CHECK_THROWS_WITH(constant[-4], "list: index -4 is out of range for 3 entries");
  CHECK_THROWS_WITH(CheckedVector<int>{1}[1], "list: index 1 is out of range for 1 entry");
}
