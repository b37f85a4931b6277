// The emulation finds mistakes of kernels: it finds each mistake with every seed and lets the right form pass.
#include "tests/gpu/broken.h"

#include <string>

#include "tests/emulated_gpu/sanitizers.h"
#include "tests/gpu/child.h"
#include "tests/gpu/device_floats.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

constexpr int kLength = 1000;
constexpr uint64_t kSeeds = gpu::emulated::kRaceChecks ? 2 : 6;  // reports of races take seconds

struct Case {
  std::string_view mistake;
  const char *plain, *address, *race;  // the report: without a sanitizer, with each of two
  float (*value)(int i);               // y of the right kernel
  int count;                           // number of values to check
};

float x_of(int i) { return static_cast<float>(i % 64 + 1); }
float half_sum(int i) { return i % 32 >= 16 ? -1.f : static_cast<float>(i < 32 ? 136 : 648); }
float one(int) { return 1; }

const Case kCases[] = {
    {"no_barrier", "wrong numbers", "wrong numbers", "data race", [](int i) { return x_of(i / 64 * 64 + 63 - i % 64); },
     128},
    {"no_second_barrier", "wrong numbers", "wrong numbers", "data race", [](int) { return 6240.f; }, 2},
    {"no_warp_barrier", "wrong numbers", "wrong numbers", "data race", [](int i) { return x_of(i ^ 1); }, 64},
    {"some_leave", " have ended", " have ended", " have ended", [](int i) { return x_of(49 - i); }, 50},
    {"two_barriers", "threads of one block meet here and in __syncthreads at broken.cu:", "meet here and in",
     "meet here and in", one, 64},
    {"half_shuffle", "wait in __shfl_xor_sync at broken.cu:", "wait in __shfl", "wait in __shfl", half_sum, 16},
    {"past_the_end", "written to past the end of a block of 4000 bytes by past_the_end", "use-after-poison",
     "past the end of a block", one, kLength},
    {"past_shared", "shared memory was written to outside of what was declared", "use-after-poison",
     "outside of what was declared", one, 100},
    {"no_atomic", "", "", "data race", [](int) { return 256.f; }, 1},
    {"no_wait_for_copies", "wrong numbers", "wrong numbers", "wrong numbers", x_of, 128},
    {"too_much_shared", "over 227 KiB with the dynamic one", "over 227 KiB", "over 227 KiB", x_of, 128},
    {"other_alignment", "the address is not a multiple of the pack", "not a multiple", "not a multiple", x_of, 128},
};

// The report of a kernel that runs in a process of its own; empty if it finds no mistake.
std::string found(const Case& c, bool right, uint64_t seed) {
  return said_by([&] {
    gpu::emulated::schedule() = {seed, c.mistake == "no_atomic" ? 2 : 1};
    try {
      DeviceFloats y(kLength), x(kLength);
      std::vector<float> values(kLength);
      for (int i = 0; i < kLength; ++i) values[static_cast<size_t>(i)] = x_of(i);
      x.give(values);
      y.give(std::vector<float>(kLength, 0.f));
      start(c.mistake, right, gpu::stream_of(kGpu), y.data(), x.data(), kLength);
      const std::vector<float> got = y.taken();
      for (int i = 0; i < c.count; ++i)
        if (!(got[static_cast<size_t>(i)] == c.value(i))) {
          std::fprintf(stderr, "wrong numbers: %g instead of %g at %d\n", got[static_cast<size_t>(i)], c.value(i), i);
          break;
        }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  });
}

}  // namespace

TEST_CASE("right kernels pass with every seed") {
  for (const Case& c : kCases)
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      INFO("kernel " << c.mistake << ", seed " << seed);
      CHECK(found(c, true, seed) == "");
    }
}

TEST_CASE("every mistake is found with every seed") {
  for (const Case& c : kCases) {
    const char* expected = gpu::emulated::kRaceChecks ? c.race : gpu::emulated::kAddressChecks ? c.address : c.plain;
    if (!*expected) continue;  // only the race checker finds it
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const std::string said = found(c, false, seed);
      INFO("kernel " << c.mistake << ", seed " << seed << ": " << said);
      CHECK(said.find(expected) != std::string::npos);
    }
  }
}

TEST_CASE("device memory is the device's") {
  const auto touch = [](auto f) {
    return said_by([&] {
      DeviceFloats x(16);
      x.give(std::vector<float>(16, 1.f));
      gpu::synchronize();
      f(x);
    });
  };
  const auto ended = [](const std::string& said) {  // reported by the emulation or by the sanitizer
    return said.find("signal 11") != std::string::npos || said.find("SEGV") != std::string::npos;
  };
  CHECK(touch([](DeviceFloats&) {}) == "");
  const std::string read = touch([](DeviceFloats& x) { std::fprintf(stderr, "%g", *x.data()); });
  const std::string written = touch([](DeviceFloats& x) { *x.data() = 1; });
  INFO(read << "; " << written);
  CHECK(ended(read));
  CHECK(ended(written));
  if (!gpu::emulated::kAddressChecks && !gpu::emulated::kRaceChecks)
    CHECK(read.find("host code touches memory of cuda:0 outside of a transfer") != std::string::npos);
}
