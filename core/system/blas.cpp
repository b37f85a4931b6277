#include "core/system/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <strings.h>
#include <sys/mman.h>

#include <algorithm>
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

namespace {

// Width, in bits, of the widest vectors that OpenBLAS's kernels use on an x86-64 core of this name (OpenBLAS's
// driver/others/dynamic.c and kernel/x86_64/KERNEL.*). 0: the core is not known.
int vector_bits(const std::string& core) {
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return strcasecmp(core.c_str(), name) == 0; });
  };
  if (is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids"})) return 512;
  if (is_one_of({"Haswell", "Zen", "Excavator", "Steamroller", "Piledriver", "Bulldozer", "Sandybridge"})) return 256;
  if (is_one_of({"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Atom", "Nano", "Barcelona", "Bobcat",
                 "Opteron", "Opteron_SSE3", "Athlon", "Katmai", "Coppermine", "Northwood", "Banias"}))
    return 128;
  return 0;
}

}  // namespace

BlasInfo blas_info() {
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY ..."
  const std::string core = openblas_get_corename();
  const int parallel = openblas_get_parallel();
  return {.version = config.substr(0, config.find(' ', config.find(' ') + 1)),
          .core = core,
          .vector_bits = vector_bits(core),
          .flavour = parallel == OPENBLAS_OPENMP   ? "openmp"
                     : parallel == OPENBLAS_THREAD ? "pthread"
                                                   : "sequential"};
}

}  // namespace isonorm
