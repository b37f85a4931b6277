// Varies the emulated devices in tests: when work is done, and the order of threads. On a real device, where neither
// can be chosen, the test runs once or `count` times.
#pragma once

#include <cstdint>

#include "tests/support/catch.h"
#ifdef ISONORM_GPU_EMULATED
#include "tests/emulated_gpu/runtime.h"
#endif

namespace isonorm::test {

// Runs f() with work done lazily (when waited for), at once, and at random times.
template <class F> void at_every_pace(F&& f) {
#ifdef ISONORM_GPU_EMULATED
  using gpu::emulated::Pace, gpu::emulated::runtime_settings;
  const auto before = runtime_settings();
  for (const Pace pace : {Pace::lazy, Pace::at_once, Pace::drawn}) {
    INFO("pace " << static_cast<int>(pace));
    runtime_settings().pace = pace;
    f();
  }
  runtime_settings() = before;
#else
  f();
#endif
}

// Calls f(i) for i from 0 to count - 1: first with threads in ascending order, then in random orders, some of them with
// two OS threads.
template <class F> void in_orders(uint64_t count, F&& f) {
#ifdef ISONORM_GPU_EMULATED
  const auto before = gpu::emulated::schedule();
#endif
  for (uint64_t i = 0; i < count; ++i) {
    INFO("order " << i);
#ifdef ISONORM_GPU_EMULATED
    gpu::emulated::schedule() = {i, i % 2 ? 1 : 2};
#endif
    f(i);
  }
#ifdef ISONORM_GPU_EMULATED
  gpu::emulated::schedule() = before;
#endif
}

}  // namespace isonorm::test
