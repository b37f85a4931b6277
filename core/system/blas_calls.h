// Internal: a scope around calls of OpenBLAS.
#pragma once

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

}  // namespace isonorm
