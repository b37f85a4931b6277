// What tests vary of emulated devices: when work is done, and the order of threads. A real device has its own ways: there
// the test is done as often, as it comes.
#pragma once

#include <cstdint>

#include "tests/support/catch.h"
#ifdef ISONORM_GPU_EMULATED
#include "tests/emulated_gpu/runtime.h"
#endif

namespace isonorm::test {

// f() with work that is done when it is waited for, when it is given, and at any time between.
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

// f(i) for i from 0 to count - 1, with threads in ascending order first and drawn ones then, some by two of the system.
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
