# The libraries that the build needs. The headers of the installed library do not expose them to users.

set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # programs of an enclosing project link them, too
find_package(Threads REQUIRED)

# All missing packages are reported at once, by Debian's names.
set(missing)
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  list(APPEND missing zlib1g-dev)
endif()
find_package(nlohmann_json 3.9 QUIET)
if(NOT nlohmann_json_FOUND)
  list(APPEND missing nlohmann-json3-dev)
endif()
include(cmake/readers.cmake)
list(APPEND missing ${ISONORM_READERS_MISSING})
include(cmake/openblas.cmake)
if(ISONORM_BLAS_MISSING)
  list(APPEND missing libopenblas-openmp-dev)
else()
  try_compile(links SOURCE_FROM_CONTENT blas.cpp "#include <cblas.h>
void* volatile used[] = {(void*)cblas_sgemm, (void*)openblas_get_config, (void*)openblas_get_corename, (void*)openblas_get_parallel};
int main() {}" LINK_LIBRARIES isonorm_blas NO_CACHE)
  if(NOT links)
    message(FATAL_ERROR "${ISONORM_OPENBLAS_LIBRARY} with ${ISONORM_OPENBLAS_INCLUDE}/cblas.h is not an OpenBLAS with cblas; name one by "
                        "-DISONORM_OPENBLAS_LIBRARY=... and -DISONORM_OPENBLAS_INCLUDE=..., or install the Debian package libopenblas-openmp-dev")
  endif()
endif()
if(ISONORM_BUILD_TOOLS OR ISONORM_BUILD_BENCHMARKS)
  find_package(CLI11 QUIET)
  if(NOT CLI11_FOUND)
    list(APPEND missing libcli11-dev)
  endif()
  find_path(ISONORM_TOML_INCLUDE toml++/toml.h)
  mark_as_advanced(ISONORM_TOML_INCLUDE)
  if(NOT ISONORM_TOML_INCLUDE)
    list(APPEND missing libtomlplusplus-dev)
  endif()
endif()
if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "not found, install the Debian packages: ${missing}")
endif()
