# What the library is built with. None of it is visible to a user of the installed library's headers.

set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # a program of a project around this one links them too
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)

include(cmake/openblas.cmake)
if(ISONORM_BLAS_MISSING)
  message(FATAL_ERROR "${ISONORM_BLAS_MISSING}")
endif()
