// Links between devices: real ones in test_distributed_cuda, which `scripts/gpu truth` runs, else emulated ones.
#include "core/memory/link.h"

#include <algorithm>

#include "core/memory/bytes.h"
#include "distributed/world.h"
#include "gpu/device.h"
#include "tests/distributed/suite.h"
#include "tests/support/catch.h"

using namespace isonorm;
using distributed::Group, distributed::run_ranks;

namespace {

constexpr Device kFirst{DeviceKind::cuda, 0};

// True if a link is possible here; warns with the reason if not.
bool can_link() {
  const Tensor first = empty({1}, {DType::f32, kFirst});
  const LinkOffer offer = links->offer(kFirst, true);
  if (offer.why_none[0] != 0) WARN("not run: links of NCCL: " << offer.why_none.data());
  return offer.why_none[0] == 0;
}

}  // namespace

TEST_CASE("a link of a single rank moves the bytes of its device") {
  if (!can_link()) return;
  const std::vector<float> values = test::elements<float>(1, 1'000);
  const Tensor x = test::on(kFirst, from_vector(values, {1'000})), y = empty({1'000}, x.options()),
               z = empty({1'000}, x.options());
  const auto link = links->make(kFirst, links->offer(kFirst, true), 0, 1, {60, [] {}});
  link->exchange(bytes_of(x), mutable_bytes_of(y), byte_size(x), "exchange");
  link->gather(bytes_of(y), mutable_bytes_of(z), byte_size(x), "gather");
  CHECK_NOTHROW(test::demand_equal(y, values, "exchange"));
  CHECK_NOTHROW(test::demand_equal(z, values, "gather"));
}

TEST_CASE("threads as ranks on all GPUs: every call gives what its definition says") {
  const int n = std::min(gpu::device_count(), 4);
  if (n < 2) {
    WARN("not run: ranks on several GPUs: there is " << n);
    return;
  }
  const bool linked = can_link();
  CHECK_NOTHROW(run_ranks(
      n,
      [&](Group& g) {
        test::check_group(g, {DeviceKind::cuda, g.rank()}, 20'000);
        check(g.why_by_host().empty() == linked, "by the host: ", g.why_by_host());
      },
      60));
}
