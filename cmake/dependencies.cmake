# What the library is built with. None of it is visible to a user of the installed library's headers.

find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)

# OpenBLAS in its OpenMP flavour: inside our parallel regions the pthread flavour would start threads of its own.
find_path(OPENBLAS_INCLUDE cblas.h HINTS /usr/include/x86_64-linux-gnu/openblas-openmp
          /usr/include/aarch64-linux-gnu/openblas-openmp PATH_SUFFIXES openblas-openmp openblas)
find_library(OPENBLAS_LIBRARY openblas HINTS /usr/lib/x86_64-linux-gnu/openblas-openmp
             /usr/lib/aarch64-linux-gnu/openblas-openmp PATH_SUFFIXES openblas-openmp)
if(NOT OPENBLAS_INCLUDE OR NOT OPENBLAS_LIBRARY)
  message(FATAL_ERROR "OpenBLAS not found: install the Debian package libopenblas-openmp-dev")
endif()
add_library(isonorm_blas INTERFACE)
target_include_directories(isonorm_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(isonorm_blas INTERFACE ${OPENBLAS_LIBRARY})
