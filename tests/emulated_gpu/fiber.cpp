#include "tests/emulated_gpu/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>

#include "tests/emulated_gpu/sanitizers.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace isonorm::gpu::emulated {
namespace {

constexpr size_t kStack = 256 << 10, kPage = 4096;

#ifdef __x86_64__
// Saves the registers that a function call must preserve, switches the stack, and restores the other fiber's registers.
asm(R"(
.text
.type isonorm_gpu_switch, @function
isonorm_gpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size isonorm_gpu_switch, . - isonorm_gpu_switch
)");
extern "C" void isonorm_gpu_switch(void** from, void* to);
#endif

}  // namespace

void allocate_stack(Fiber& f, size_t number) {
  void* p = mmap(nullptr, kStack + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) std::abort();
  mprotect(p, kPage, PROT_NONE);
  f.stack = static_cast<std::byte*>(p) + kPage;
  // Stack tops at the same offset in a page would share a few sets of the first-level cache.
  f.bytes = kStack - number % 16 * 256;
}

void release_stack(Fiber& f) {
  show(f.stack, f.bytes);
#ifdef ISONORM_RACE_CHECKS
  __tsan_destroy_fiber(f.race_checks);
#endif
  munmap(f.stack - kPage, kStack + kPage);
}

void prepare(Fiber& f, void (*entry)()) {
  show(f.stack, f.bytes);
#ifdef __x86_64__
  // From the top: a null return address, the entry, six registers.
  void** top = reinterpret_cast<void**>(f.stack + f.bytes);
  top[-1] = nullptr;
  top[-2] = reinterpret_cast<void*>(entry);
  for (int i = 3; i <= 8; ++i) top[-i] = nullptr;
  f.at = top - 8;
#else
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack;
  f.context.uc_stack.ss_size = f.bytes;
  f.context.uc_link = nullptr;
  makecontext(&f.context, entry, 0);
#endif
#ifdef ISONORM_RACE_CHECKS
  if (!f.race_checks) f.race_checks = __tsan_create_fiber(0);
#endif
}

void begin_on_fiber() {
#ifdef __SANITIZE_ADDRESS__
  const void* bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
#endif
}

void adopt_thread([[maybe_unused]] Fiber& host) {
#ifdef __SANITIZE_ADDRESS__
  pthread_attr_t attributes;
  void* bottom;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &bottom, &host.bytes);
  pthread_attr_destroy(&attributes);
  host.stack = static_cast<std::byte*>(bottom);
#endif
#ifdef ISONORM_RACE_CHECKS
  host.race_checks = __tsan_get_current_fiber();
#endif
}

void renew_for_race_checks([[maybe_unused]] Fiber& f) {
#ifdef ISONORM_RACE_CHECKS
  __tsan_destroy_fiber(f.race_checks);
  f.race_checks = __tsan_create_fiber(0);
#endif
}

void switch_to(Fiber& from, Fiber& to) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from.address_checks, to.stack, to.bytes);
#endif
#ifdef ISONORM_RACE_CHECKS
  __tsan_switch_to_fiber(to.race_checks, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef __x86_64__
  isonorm_gpu_switch(&from.at, to.at);
#else
  swapcontext(&from.context, &to.context);
#endif
#ifdef __SANITIZE_ADDRESS__
  const void* bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(from.address_checks, &bottom, &bytes);
#endif
}

}  // namespace isonorm::gpu::emulated
