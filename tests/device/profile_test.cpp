// A profile of calls on a device: device times and host times, in calls, tables and trace.
#include "core/system/profile.h"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "gpu/stream.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using profile::Call;
using test::kCuda, test::kCuda1;

TEST_CASE("a call on a device has the device's times, from its stream, and the host's") {
  const Tensor a = to(randn({96, 96}), kCuda), w = to(randn({8, 8}), kCuda1);
  require_grad(a);
  gpu::stream_of(kCuda).wait();
  profile::start();
  const Tensor loss = sum(matmul(a, a));
  backward(loss);
  const Tensor there = matmul(w, w), here = randn({4});
  constexpr double kPause = 0.02;
  std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
  const profile::Profile p = profile::stop();
  double end = 0;
  int products = 0, of_second = 0, of_host = 0;
  for (const Call& c : p.calls) {
    INFO(c.kernel);
    if (c.device == kCpu) {
      ++of_host;
      CHECK(c.device_seconds == 0);
      continue;
    }
    of_second += c.device == kCuda1;
    // The emulation does the work when the host waits, after the pause. CUDA's milliseconds are f32.
    CHECK(c.device_seconds > 0);
    CHECK(c.device_start > c.start + kPause - 1e-6);
    CHECK(c.device_start + c.device_seconds < p.seconds + 1e-6);
    if (c.device != kCuda) continue;
    CHECK(c.device_start > end - 1e-6);  // calls do not overlap
    end = c.device_start + c.device_seconds;
    products += std::string(c.kernel) == "matmul" && c.flops == 2 * 96 * 96 * 96;
  }
  CHECK(products == 3);
  CHECK(of_second == 1);
  CHECK(of_host > 0);
}

TEST_CASE("a call is between two marks of a device's clock, which the last one sets by the host's") {
  constexpr double kBetween = 0.25;  // between marks: mark i is at time i kBetween
  static int64_t marks;
  marks = 0;
  const profile::DeviceClock clock{.mark = [](Device) -> profile::Mark { return std::make_shared<int64_t>(marks++); },
                                   .seconds =
                                       [](const profile::Mark& from, const profile::Mark& to) {
                                         const auto at = [](const profile::Mark& m) {
                                           return *static_cast<const int64_t*>(m.get());
                                         };
                                         return kBetween * static_cast<double>(at(to) - at(from));
                                       }};
  const Tensor a = to(randn({4, 4}), kCuda);
  const auto* before = std::exchange(profile::device_clock, &clock);
  profile::start();
  const Tensor b = matmul(a, a), c = matmul(b, b), d = matmul(c, c);
  const profile::Profile p = profile::stop();
  profile::device_clock = before;
  REQUIRE(p.calls.size() == 3);
  CHECK(marks == 2 * 3 + 1);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(p.calls[i].device_seconds == kBetween);
    CHECK(p.calls[i].device_start == Approx(p.calls[0].device_start + 2 * kBetween * static_cast<double>(i)));
  }
  CHECK(p.calls[0].device_start + 6 * kBetween == Approx(p.seconds));  // the time at which the host saw the last mark
}

TEST_CASE("tables of a device have its times, and the host's times in another column") {
  const auto call = [](const char* kernel, bool backward, double seconds, double device_seconds) {
    return Call{kernel, "fc", backward,      0, 0, seconds, 2'000'000, kernel[0] == 'm' ? 8'000'000 : 0,
                kCuda,  0,    device_seconds};
  };
  const profile::Profile p{
      {call("copy", false, 5e-3, 1e-3), call("matmul", false, 1e-4, 2e-3), call("matmul", true, 2e-4, 4e-3)}, 10e-3};
  CHECK(profile::tables(p) ==
        "kernel                           calls          ms     share      GB/s   GFLOP/s   host ms\n"
        "matmul                               2        6.00    60.0 %       0.7       2.7      0.30\n"
        "copy                                 1        1.00    10.0 %       2.0                5.00\n"
        "between kernels                               3.00    30.0 %\n"
        "all                                  3       10.00\n"
        "\n"
        "module                           calls  forward ms backward ms     share   host ms\n"
        "fc                                   3        3.00        4.00    70.0 %      5.30\n");
}

TEST_CASE("a trace has the host's calls and the device's, each in a process of its own") {
  const TempFolder folder;
  const Tensor a = to(randn({16, 16}), kCuda);
  profile::start();
  const Tensor b = matmul(a, a);
  const profile::Profile p = profile::stop();
  const std::string path = (folder.path / "trace.json").string();
  profile::write_trace(path, p);
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file);
  int host = 0, device = 0, names = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] == "M") {
      names += e["args"]["name"] == (e["pid"] == 1 ? "host" : "cuda:0");
      continue;
    }
    CHECK(e["name"] == "matmul");
    (e["pid"] == 1 ? host : device) += 1;
    if (e["pid"] == 2) {
      CHECK(e["cat"] == "device");
      CHECK(e["dur"].get<double>() == Approx(1e6 * p.calls[0].device_seconds).margin(1e-3));
      CHECK(e["ts"].get<double>() == Approx(1e6 * p.calls[0].device_start).margin(1e-3));
    }
  }
  CHECK(host == 1);
  CHECK(device == 1);
  CHECK(names == 2);
}
