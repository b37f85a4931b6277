// The BLAS at hand, and the warning about a slow one.
#include "tests/support/catch.h"

#include "core/system/blas_info.h"
#include "core/system/parallel.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("the BLAS library says what it is") {
  const BlasInfo info = blas_info();
  CHECK_THAT(info.version, Catch::Matchers::StartsWith("OpenBLAS 0."));
  CHECK_FALSE(info.core.empty());
  const int before = num_threads();
  set_num_threads(1);
  CHECK(blas_info().threads == 1);
  set_num_threads(before);
}

TEST_CASE("only a flavour other than OpenMP is warned about") {
  CHECK(blas_warning({.version = "OpenBLAS 1", .core = "Zen", .flavour = "openmp", .threads = 2}).empty());
  const std::string w = blas_warning({.version = "OpenBLAS 1", .core = "Zen", .flavour = "pthread", .threads = 2});
  CHECK_THAT(w, Contains("OpenBLAS 1 is of the pthread flavour") && Contains("libopenblas0-openmp"));
  CHECK(w.find('\n') == std::string::npos);
}
