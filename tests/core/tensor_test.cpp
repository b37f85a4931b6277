// Tensors, printing and storage.
#include "core/tensor.h"

#include "core/memory/allocator.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("values go in and come out") {
  const Tensor x = from_vector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(x.shape() == Dims{2, 3});
  CHECK(x.to_vector<double>() == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(tensor({2.5}).item() == 2.5);
  CHECK_THROWS_WITH(x.item(), Contains("[2, 3]"));
  CHECK_THROWS_WITH(from_vector<float>({1, 2}, {3}), Contains("2 values given for shape [3]"));
  CHECK_THROWS_WITH(x.data<double>(), Contains("f32") && Contains("f64"));
}

TEST_CASE("sizes are checked before anything is allocated") {
  CHECK_THROWS_WITH(empty({int64_t{1} << 40, int64_t{1} << 40}), Contains("passes the largest size"));
  CHECK_THROWS_WITH(empty({-1}), Contains("negative"));
  CHECK(empty({0, int64_t{1} << 62, 4}).numel() == 0);
  const Tensor x = empty({4});
  CHECK_THROWS_WITH(as_strided(x, {3}, {2}, 0), Contains("leave the storage"));
  CHECK_THROWS(as_strided(x, {2}, {-1}, 0));
  CHECK(as_strided(x, {2}, {-1}, 1).numel() == 2);
}

TEST_CASE("freed blocks are reused") {
  { const Tensor x = empty({1000}); }
  const int64_t before = host_allocator().stats().requests;
  for (int i = 0; i < 100; ++i) const Tensor x = empty({1000});
  CHECK(host_allocator().stats().requests == before);
}

TEST_CASE("elements are aligned, separate from other tensors, and live as long as a view of them") {
  for (const int64_t size : {1, 15, 16, 17, 128, 129, 1000}) {
    Tensor a = empty({size}), b = empty({size});
    CHECK(reinterpret_cast<uintptr_t>(a.data<float>()) % 64 == 0);
    const Tensor view = detach(a);
    fill(a, 1), fill(b, 2);
    a = b = Tensor();
    fill(empty({size}), 3);
    CHECK(view.to_vector<float>() == std::vector<float>(static_cast<size_t>(size), 1));
  }
}
