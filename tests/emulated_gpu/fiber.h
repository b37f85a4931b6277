// A second stack for the calling OS thread. Switching takes a dozen instructions of our own on x86-64, and ucontext
// elsewhere (which makes a system call each time).
#pragma once

#include <cstddef>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace isonorm::gpu::emulated {

struct Fiber {
#ifdef __x86_64__
  void* at = nullptr;  // its stack pointer while it does not run
#else
  ucontext_t context;
#endif
  std::byte* stack = nullptr;  // null: the OS thread's original stack
  size_t bytes = 0;
  void* address_checks = nullptr;  // data of the sanitizers
  void* race_checks = nullptr;
};

// The next switch to `fiber` begins entry(), which never returns. The fiber's earlier work is discarded.
void prepare(Fiber& fiber, void (*entry)());
void switch_to(Fiber& from, Fiber& to);

// A stack with an inaccessible page below it. number: of this stack among the thread's stacks.
void allocate_stack(Fiber& fiber, size_t number);
void release_stack(Fiber& fiber);
void adopt_thread(Fiber& host);            // uses the OS thread's original stack
void begin_on_fiber();                     // must be called first in an entry
void renew_for_race_checks(Fiber& fiber);  // from now on a new thread for the race checker

}  // namespace isonorm::gpu::emulated
