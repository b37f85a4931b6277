#include "core/parallel.h"

#include <cblas.h>
#include <omp.h>

#include <exception>

#include "core/error.h"

namespace isonorm {

int num_threads() { return omp_get_max_threads(); }

void set_num_threads(int n) {
  check(n >= 1, "set_num_threads: ", n, " threads asked for, expected at least 1");
  omp_set_num_threads(n);
  openblas_set_num_threads(n);
}

int thread_index() { return omp_get_thread_num(); }

namespace detail {

void parallel_blocks(int64_t count, void (*body)(const void*, int64_t), const void* closure) {
  if (omp_in_parallel() || omp_get_max_threads() == 1) {
    for (int64_t b = 0; b < count; ++b) body(closure, b);
    return;
  }
  std::exception_ptr first;  // none may leave the region
  // As they come: where a core is slow, or busy elsewhere for a while, the others take over its blocks.
  const int64_t chunk = std::max<int64_t>(1, count / (8 * omp_get_max_threads()));
#pragma omp parallel for schedule(dynamic, chunk)
  for (int64_t b = 0; b < count; ++b) {
    try {
      body(closure, b);
    } catch (...) {
#pragma omp critical(isonorm_parallel_blocks)
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace detail
}  // namespace isonorm
