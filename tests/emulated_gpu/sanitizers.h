// Tells AddressSanitizer which bytes are inaccessible, and ThreadSanitizer which barriers and warp operations order the
// threads of a kernel. Without sanitizers these functions do nothing. ISONORM_RACE_CHECKS: the kernels are compiled
// with -fsanitize=thread, but not the emulation's own sources, so __SANITIZE_THREAD__ cannot be used.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#ifdef ISONORM_RACE_CHECKS
#include <sanitizer/tsan_interface.h>
#endif

namespace isonorm::gpu::emulated {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kAddressChecks = true;
inline void hide(void* p, size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void show(void* p, size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
inline constexpr bool kAddressChecks = false;
inline void hide(void*, size_t) {}
inline void show(void*, size_t) {}
#endif

#ifdef ISONORM_RACE_CHECKS
inline constexpr bool kRaceChecks = true;
inline void release(void* name) { __tsan_release(name); }
inline void acquire(void* name) { __tsan_acquire(name); }
#else
inline constexpr bool kRaceChecks = false;
inline void release(void*) {}
inline void acquire(void*) {}
#endif

}  // namespace isonorm::gpu::emulated
