// Internal: calls of OpenBLAS.
#pragma once

namespace isonorm {

// While this lives, OpenBLAS computes what the calling thread asks for in that thread alone: our own threads share out
// the work. Of the OpenMP flavour this leaves the process as it was; of the pthread flavour the number of threads is
// one from then on. Throws ErrorKind::memory where there is no room for the buffer that OpenBLAS takes for a thread:
// OpenBLAS would ask the system for it without end.
class BlasCall {
 public:
  [[nodiscard]] BlasCall();
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;

 private:
  int before_;  // what OpenMP would use in this thread
};

}  // namespace isonorm
