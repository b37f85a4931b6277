// What the BLAS library at hand is. Which one a program gets is decided when it starts: by the machine's packages, its
// CPU and environment.
#pragma once

#include <string>

namespace isonorm {

struct BlasInfo {
  std::string version;  // "OpenBLAS 0.3.21"
  std::string core;     // OpenBLAS's name of the CPU whose kernels it chose
  int vector_bits;      // width of these kernels' vectors; 0: the core is not known
  std::string flavour;  // "openmp", "pthread" or "sequential"
};
BlasInfo blas_info();

}  // namespace isonorm
