# What the library is built with. None of it is visible to a user of the installed library's headers.

set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # a program of a project around this one links them too
find_package(Threads REQUIRED)

# All that is missing is said at once, by the names of Debian's packages.
set(missing)
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  list(APPEND missing zlib1g-dev)
endif()
find_package(nlohmann_json 3.9 QUIET)
if(NOT nlohmann_json_FOUND)
  list(APPEND missing nlohmann-json3-dev)
endif()
include(cmake/openblas.cmake)
if(ISONORM_BLAS_MISSING)
  list(APPEND missing libopenblas-openmp-dev)
endif()
if(ISONORM_BUILD_TOOLS OR ISONORM_BUILD_BENCHMARKS)
  find_package(CLI11 QUIET)
  if(NOT CLI11_FOUND)
    list(APPEND missing libcli11-dev)
  endif()
endif()
if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "not found, install the Debian packages: ${missing}")
endif()
