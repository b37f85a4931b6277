#include "core/system/workers.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/system/float_environment.h"
#include "core/system/start_thread.h"

namespace isonorm {
namespace {

// Phases of a slot. `claimed`: a region is about to assign a job. `assigned`: the job is set, and the worker has not
// begun.
enum Phase : uint32_t { absent, idle, claimed, assigned, running };

// A state is a phase in the lowest three bits, and above them the number of the claim, so that no state ever repeats.
constexpr uint32_t kPhases = 8;
Phase phase(uint32_t state) { return static_cast<Phase>(state % kPhases); }
uint32_t with(uint32_t state, Phase p) { return state - state % kPhases + p; }

struct alignas(64) Slot {
  std::atomic<uint32_t> state = absent;
  int index = 0;
  void (*job)(void*, int) = nullptr;
  void* context = nullptr;
};

Slot slots[kMostThreads - 1];
std::atomic<int> available = kMostThreads - 1;  // smaller after the system has refused a thread

// Longer than the usual gap between two regions of a training step, and too short to be noticed on a machine whose
// cores are busy.
constexpr std::chrono::microseconds kSpin(40);

void relax() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

// Waits until the state differs from `old`, and returns it.
uint32_t changed(const std::atomic<uint32_t>& state, uint32_t old) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do
    for (int i = 0; i < 32; ++i) {
      const uint32_t now = state.load(std::memory_order_acquire);
      if (now != old) return now;
      relax();
    }
  while (std::chrono::steady_clock::now() < end);
  state.wait(old, std::memory_order_acquire);
  return state.load(std::memory_order_acquire);
}

// Sets the state, for the worker or the thread that it works for. The store is sequentially consistent: notify_one()
// checks for a sleeper, and must not do so before the new state is visible.
void tell(Slot& slot, uint32_t state) {
  slot.state.store(state);
  slot.state.notify_one();
}

void* work(void* own) {
  const DefaultFloatEnvironment environment;  // otherwise inherited from the thread that started this one
  Slot& slot = *static_cast<Slot*>(own);
  run_on_all_cores();
  uint32_t state = slot.state.load(std::memory_order_acquire);
  while (true) {
    if (phase(state) != assigned) {
      state = changed(slot.state, state);
    } else if (slot.state.compare_exchange_strong(state, with(state, running), std::memory_order_acquire)) {
      slot.job(slot.context, slot.index);
      state = with(state, idle);
      tell(slot, state);
    }
  }
  return nullptr;
}

// A child of fork() has none of its parent's threads, so it starts its own.
void forget_threads() {
  for (Slot& slot : slots)
    if (slot.state != absent) slot.state = with(slot.state + kPhases, absent);
  retry_refused_workers();
}

// Keeps the library loaded: unloading it would remove the code under its sleeping threads.
void stay_loaded() {
  Dl_info self;
  if (dladdr(&slots, &self)) dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

bool start(Slot& slot) {
  [[maybe_unused]] static const int once = (stay_loaded(), pthread_atfork(nullptr, nullptr, forget_threads));
  constexpr size_t least_stack = size_t{2} << 20;  // `ulimit -s` may be smaller
  pthread_attr_t attributes;
  size_t stack = 0;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_setstacksize(&attributes, std::max(stack, least_stack));
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const bool started = pthread_create(&thread, &attributes, work, &slot) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

Helpers::Helpers(int wanted, int among, void (*job)(void*, int), void* context) {
  for (int s = 0; s < std::min(among, available.load(std::memory_order_relaxed)) && count_ < wanted; ++s) {
    Slot& slot = slots[s];
    uint32_t before = slot.state.load(std::memory_order_relaxed);
    if (phase(before) != idle && phase(before) != absent) continue;
    const uint32_t mine = with(before + kPhases, claimed);
    if (!slot.state.compare_exchange_strong(before, mine, std::memory_order_acquire)) continue;
    slot.job = job, slot.context = context, slot.index = count_ + 1;
    tell(slot, with(mine, assigned));
    if (phase(before) == absent && !start(slot)) {
      slot.state.store(with(mine, absent), std::memory_order_release);
      available.store(s, std::memory_order_relaxed);
      return;
    }
    claims_[count_++] = {s, mine};
  }
}

Helpers::~Helpers() {
  for (int i = 0; i < count_; ++i) {
    std::atomic<uint32_t>& state = slots[claims_[i].slot].state;
    const uint32_t mine = claims_[i].state;
    uint32_t waits = with(mine, assigned);
    if (state.compare_exchange_strong(waits, with(mine, idle), std::memory_order_release)) continue;
    const uint32_t busy = with(mine, running);
    while (state.load(std::memory_order_acquire) == busy) changed(state, busy);
  }
}

void retry_refused_workers() { available.store(kMostThreads - 1, std::memory_order_relaxed); }

}  // namespace isonorm
