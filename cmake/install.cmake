# `cmake --install`: the library (component library), headers, CMake package and pkg-config file (component dev).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/isonorm)

install(TARGETS isonorm EXPORT isonormTargets RUNTIME COMPONENT library LIBRARY COMPONENT library NAMELINK_COMPONENT dev ARCHIVE COMPONENT dev)
install(DIRECTORY ${ISONORM_PUBLIC_HEADERS}/isonorm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES core/tensor_gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/isonorm COMPONENT dev)
install(EXPORT isonormTargets NAMESPACE isonorm:: DESTINATION ${package_dir} COMPONENT dev)

configure_package_config_file(cmake/isonormConfig.cmake.in isonormConfig.cmake INSTALL_DESTINATION ${package_dir}
                              NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(isonormConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/isonormConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/isonormConfigVersion.cmake
              cmake/openblas.cmake cmake/readers.cmake DESTINATION ${package_dir} COMPONENT dev)

file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
# A static library needs its own dependencies wherever a program is linked, with --static or not. OpenBLAS is given by
# its path, and programs look for it there when they run: its plain name is the flavour that the machine prefers.
cmake_path(GET ISONORM_OPENBLAS_LIBRARY PARENT_PATH blas_dir)
set(private " ${ISONORM_OPENBLAS_LIBRARY} -lz -lpcre2-8 -lutf8proc -lpng -ljpeg -pthread -ldl")
if(NOT blas_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  string(APPEND private " -Wl,-rpath,${blas_dir}")
endif()
if(ISONORM_GPU_FORM STREQUAL "cuda")
  string(APPEND private " ${CUDA_cudart_static_LIBRARY} -lrt")
endif()
set(PC_LIBS)
set(PC_LIBS_PRIVATE)
if(BUILD_SHARED_LIBS)
  set(PC_LIBS_PRIVATE "${private}")
else()
  set(PC_LIBS "${private}")
endif()
configure_file(cmake/isonorm.pc.in isonorm.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/isonorm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
