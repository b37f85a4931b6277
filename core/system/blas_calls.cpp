#include "core/system/blas_calls.h"

#include <cblas.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>

#include "core/error.h"

namespace isonorm {
namespace {

// OpenMP's functions, which set the number of threads for the calling thread. Null if OpenBLAS does not use OpenMP.
struct OpenMp {
  int (*threads)() = nullptr;
  void (*set_threads)(int) = nullptr;
};

const OpenMp& openmp() {
  static const OpenMp found = [] {
    OpenMp f;
    if (openblas_get_parallel() == OPENBLAS_OPENMP) {
      f.threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
      f.set_threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    }
    if (!f.threads || !f.set_threads) {
      openblas_set_num_threads(1);
      f = {};
    }
    return f;
  }();
  return found;
}

std::atomic<int> calls = 0, most_calls = 0;  // calls at the same time: now, at most so far

constexpr size_t kBuffer = size_t{128} << 20;  // BUFFER_SIZE in OpenBLAS's common_x86_64.h

bool has_room() {
  void* room = mmap(nullptr, kBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return room != MAP_FAILED && munmap(room, kBuffer) == 0;
}

}  // namespace

BlasCall::BlasCall() : before_(openmp().threads ? openmp().threads() : 1) {
  const int now = ++calls;
  int most = most_calls.load(std::memory_order_relaxed);
  if (now > most) {  // OpenBLAS keeps its buffers, and now takes one more
    if (!has_room()) {
      --calls;
      raise_text(ErrorKind::memory, __FILE__, __LINE__, "OpenBLAS: no room for its buffer of ", kBuffer >> 20, " MB");
    }
    while (most < now && !most_calls.compare_exchange_weak(most, now)) continue;
  }
  if (before_ > 1) openmp().set_threads(1);
}

BlasCall::~BlasCall() {
  if (before_ > 1) openmp().set_threads(before_);
  --calls;
}

}  // namespace isonorm
