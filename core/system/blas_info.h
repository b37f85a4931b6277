// Describes the BLAS library that this process uses. The machine's packages, its CPU and the environment choose it when
// the program starts.
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
