# OpenBLAS as the target isonorm_blas, or ISONORM_BLAS_MISSING, which says what to do. Debian's CMake file for OpenBLAS
# has no target. The OpenMP flavour is looked for first: the pthread flavour starts threads when it is loaded, and we
# never use them.
# Used by the build, and by the installed package file of a static library.

find_library(ISONORM_OPENBLAS_LIBRARY openblas HINTS /usr/lib/x86_64-linux-gnu/openblas-openmp
             /usr/lib/aarch64-linux-gnu/openblas-openmp PATH_SUFFIXES openblas-openmp)
# The library's own header lies next to it: .../lib/x/libopenblas.so has .../include/x/cblas.h. The cblas.h on the
# compiler's path may belong to another library (on Debian the one that update-alternatives prefers).
if(ISONORM_OPENBLAS_LIBRARY)
  get_filename_component(isonorm_beside ${ISONORM_OPENBLAS_LIBRARY} REALPATH)
  get_filename_component(isonorm_beside ${isonorm_beside} DIRECTORY)
  string(REGEX REPLACE "^(.*)/lib(64)?(/|$)" "\\1/include\\3" isonorm_beside ${isonorm_beside})
  find_path(ISONORM_OPENBLAS_INCLUDE cblas.h HINTS ${isonorm_beside} PATH_SUFFIXES openblas-openmp openblas)
endif()
mark_as_advanced(ISONORM_OPENBLAS_INCLUDE ISONORM_OPENBLAS_LIBRARY)
unset(ISONORM_BLAS_MISSING)
if(NOT ISONORM_OPENBLAS_INCLUDE OR NOT ISONORM_OPENBLAS_LIBRARY)
  set(ISONORM_BLAS_MISSING "OpenBLAS not found: install the Debian package libopenblas-openmp-dev")
elseif(NOT TARGET isonorm_blas)
  add_library(isonorm_blas INTERFACE IMPORTED GLOBAL)
  target_include_directories(isonorm_blas SYSTEM INTERFACE ${ISONORM_OPENBLAS_INCLUDE})
  target_link_libraries(isonorm_blas INTERFACE ${ISONORM_OPENBLAS_LIBRARY})
endif()
