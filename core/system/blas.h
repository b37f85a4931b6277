// The BLAS library that this process uses, and a scope around its calls.
#pragma once

#include <string>

namespace isonorm {

// While this lives, OpenBLAS computes in the calling thread alone, because our own threads share the work. With
// OpenBLAS's OpenMP flavour, the process is unchanged afterwards; with the pthread flavour, OpenBLAS has one thread
// from then on. Throws ErrorKind::memory if there is no room for the buffer that OpenBLAS takes for a thread; OpenBLAS
// would ask the system for it in an endless loop.
class BlasCall {
 public:
  [[nodiscard]] BlasCall();
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;

 private:
  int before_;  // number of threads that OpenMP would use in this thread
};

// Describes the BLAS library that this process uses. The machine's packages, its CPU and the environment choose it when
// the program starts.
struct BlasInfo {
  std::string version;  // "OpenBLAS 0.3.21"
  std::string core;     // OpenBLAS's name of the CPU whose kernels it chose
  int vector_bits;      // width of these kernels' vectors; 0: the core is not known
  std::string flavour;  // "openmp", "pthread" or "sequential"
};
BlasInfo blas_info();

}  // namespace isonorm
