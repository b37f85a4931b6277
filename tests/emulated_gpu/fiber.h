// A second stack for the calling OS thread to run on. Switching is a dozen instructions of our own on x86-64, ucontext
// elsewhere (which makes a system call each time).
#pragma once

#include <cstddef>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace isonorm::gpu::emulated {

struct Fiber {
#ifdef __x86_64__
  void* at = nullptr;  // where it stopped
#else
  ucontext_t context;
#endif
  std::byte* stack = nullptr;  // null: the stack that the OS thread was born with
  size_t bytes = 0;
  void* address_checks = nullptr;  // what the sanitizers keep for it
  void* race_checks = nullptr;
};

// Makes `fiber` begin with entry(), which never returns, when it is switched to. Whatever it was doing is dropped.
void prepare(Fiber& fiber, void (*entry)());
void switch_to(Fiber& from, Fiber& to);

// Stacks with a page without access below each. number: of this stack among the thread's.
void allocate_stack(Fiber& fiber, size_t number);
void release_stack(Fiber& fiber);
void adopt_thread(Fiber& host);            // the calling OS thread's own stack
void begin_on_fiber();                     // the first thing an entry calls
void renew_for_race_checks(Fiber& fiber);  // to the race checker a new thread from here on

}  // namespace isonorm::gpu::emulated
