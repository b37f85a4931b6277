#include "core/system/blas_info.h"

#include <cblas.h>

#include "core/error.h"

namespace isonorm {

BlasInfo blas_info() {
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY ..."
  const int parallel = openblas_get_parallel();
  return {.version = config.substr(0, config.find(' ', config.find(' ') + 1)),
          .core = openblas_get_corename(),
          .flavour = parallel == OPENBLAS_OPENMP   ? "openmp"
                     : parallel == OPENBLAS_THREAD ? "pthread"
                                                   : "sequential"};
}

std::string blas_warning(const BlasInfo& info) {
  if (info.flavour == "openmp") return {};
  return text("warning: ", info.version, " is of the ", info.flavour,
              " flavour, with which matrix products are slow here; install libopenblas0-openmp, and choose it by "
              "update-alternatives --config libopenblas.so.0-$(uname -m)-linux-gnu");
}

}  // namespace isonorm
