// Caches of tensors that are computed from a few numbers.
#include "core/memory/kept.h"

#include "core/error.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

KeptTensors::Key key(double a, DType dtype = DType::f64, Device device = kCpu) { return {{a, 0, 0}, dtype, device}; }

}  // namespace

TEST_CASE("a tensor is made once for its key, and the last few are kept") {
  KeptTensors kept(2);
  int made = 0;
  const auto get = [&](const KeptTensors::Key& k) {
    const std::vector<Tensor> t = kept.get(k, [&] {
      ++made;
      return std::vector<Tensor>{tensor({k.numbers[0]})};
    });
    CHECK(t.size() == 1);
    CHECK(t[0].item() == k.numbers[0]);
    return made;
  };
  CHECK(get(key(1)) == 1);
  CHECK(get(key(2)) == 2);
  CHECK(get(key(1)) == 2);
  CHECK(get(key(3)) == 3);  // 2 was used least recently, so it is dropped
  CHECK(get(key(1)) == 3);
  CHECK(get(key(2)) == 4);
  CHECK(get(key(2, DType::f32)) == 5);
  CHECK(get(key(2, DType::f32, {DeviceKind::cuda, 1})) == 6);
}

TEST_CASE("what fails to be made is not kept") {
  KeptTensors kept(2);
  CHECK_THROWS_AS(kept.get(key(1), []() -> std::vector<Tensor> { throw Error(ErrorKind::invalid, "no", "", 0); }),
                  Error);
  CHECK(kept.get(key(1), [] { return std::vector<Tensor>{tensor({5.0})}; })[0].item() == 5);
}

TEST_CASE("a kept tensor outlives its keeper while somebody holds it") {
  KeptTensors kept(1);
  std::vector<Tensor> held;
  const auto make = [] { return std::vector<Tensor>{tensor({1.0})}; };
  const Tensor before = kept.get(key(1), make)[0];
  {
    const HoldKept hold(held);
    (void)kept.get(key(1), make);
    (void)kept.get(key(2), make);
  }
  (void)kept.get(key(3), make);
  REQUIRE(held.size() == 2);
  CHECK(held[0].data<double>() == before.data<double>());
}
