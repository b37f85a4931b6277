// What the BLAS library at hand is. Which one a program gets is decided when it starts: by the machine's packages, its
// CPU and environment.
#pragma once

#include <string>

namespace isonorm {

struct BlasInfo {
  std::string version;  // "OpenBLAS 0.3.21"
  std::string core;     // OpenBLAS's name of the CPU whose kernels it chose
  std::string flavour;  // "openmp", "pthread" or "sequential"
};
BlasInfo blas_info();

// One line for the user where the flavour is not "openmp" and matrix products will be slow; empty otherwise. Programs
// print it at start-up.
std::string blas_warning(const BlasInfo& info = blas_info());

}  // namespace isonorm
