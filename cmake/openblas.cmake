# OpenBLAS as the target isonorm_blas, or ISONORM_BLAS_MISSING with what to do. Debian's CMake file for it has no target. The OpenMP flavour
# is looked for first: the pthread flavour starts threads when it is loaded, which we never use.
# Used by the build, and by the installed package file of a static library.

find_path(OPENBLAS_INCLUDE cblas.h HINTS /usr/include/x86_64-linux-gnu/openblas-openmp
          /usr/include/aarch64-linux-gnu/openblas-openmp PATH_SUFFIXES openblas-openmp openblas)
find_library(OPENBLAS_LIBRARY openblas HINTS /usr/lib/x86_64-linux-gnu/openblas-openmp
             /usr/lib/aarch64-linux-gnu/openblas-openmp PATH_SUFFIXES openblas-openmp)
mark_as_advanced(OPENBLAS_INCLUDE OPENBLAS_LIBRARY)
unset(ISONORM_BLAS_MISSING)
if(NOT OPENBLAS_INCLUDE OR NOT OPENBLAS_LIBRARY)
  set(ISONORM_BLAS_MISSING "OpenBLAS not found: install the Debian package libopenblas-openmp-dev")
elseif(NOT TARGET isonorm_blas)
  add_library(isonorm_blas INTERFACE IMPORTED GLOBAL)
  target_include_directories(isonorm_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
  target_link_libraries(isonorm_blas INTERFACE ${OPENBLAS_LIBRARY})
endif()
