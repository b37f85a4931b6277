# CUDA in the library: ISONORM_GPU chooses the form of gpu/.
#   off       none.cpp alone: there are no devices
#   cuda      compiled by nvcc, runtime linked statically; runs on machines without a driver, where there are no devices
#   emulated  the same sources compiled for the host, with tests/emulated_gpu instead of CUDA: kernels run on the CPU
#   ptx       compiled by nvcc, with tests/ptx instead of CUDA's runtime: it interprets the PTX on the CPU
#   auto      cuda if nvcc is found and compiles for the devices, else off
# Programs that test the GPU link the emulated objects in front of a library of any other form.

set(ISONORM_GPU auto CACHE STRING "off, cuda, emulated, ptx or auto (cuda if nvcc works)")
set_property(CACHE ISONORM_GPU PROPERTY STRINGS auto off cuda emulated ptx)
set(ISONORM_CUDA_ARCHITECTURES "" CACHE STRING
    "What nvcc compiles for; of the first also the form that later devices translate for themselves (empty: CMAKE_CUDA_ARCHITECTURES, else 80;90a)")
option(ISONORM_CHECK_CUDA "Compile the CUDA sources, where a CUDA compiler is found, whatever ISONORM_GPU says" OFF)
if(NOT ISONORM_GPU MATCHES "^(auto|off|cuda|emulated|ptx)$")
  message(FATAL_ERROR "ISONORM_GPU is '${ISONORM_GPU}', expected off, cuda, emulated, ptx or auto")
endif()

set(ISONORM_CUDA_FOUND OFF)
if(ISONORM_GPU MATCHES "auto|cuda|ptx" OR ISONORM_CHECK_CUDA)
  include(cmake/nvcc.cmake)
  if(NOT ISONORM_CUDA_FOUND AND ISONORM_GPU MATCHES "cuda|ptx")
    message(FATAL_ERROR "ISONORM_GPU=${ISONORM_GPU}: ${ISONORM_CUDA_MISSING}")
  elseif(NOT ISONORM_CUDA_FOUND)
    message(STATUS "GPU: ${ISONORM_CUDA_MISSING}")
  endif()
endif()
set(ISONORM_GPU_FORM ${ISONORM_GPU})
if(ISONORM_GPU STREQUAL "auto")
  set(ISONORM_GPU_FORM off)
  if(ISONORM_CUDA_FOUND)
    set(ISONORM_GPU_FORM cuda)
  endif()
endif()

file(GLOB gpu_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gpu/*.cpp ${PROJECT_SOURCE_DIR}/gpu/libraries/*.cpp
     ${PROJECT_SOURCE_DIR}/gpu/kernels/*.cu ${PROJECT_SOURCE_DIR}/gpu/steps/*.cpp ${PROJECT_SOURCE_DIR}/gpu/steps/*.cu)
list(REMOVE_ITEM gpu_sources ${PROJECT_SOURCE_DIR}/gpu/none.cpp)

# isonorm_gpu_objects(name): an object library with the settings that all forms share.
function(isonorm_gpu_objects name)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${gpu_sources})
  target_link_libraries(${name} PRIVATE isonorm_flags)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET default)
endfunction()

# In its own folder, because the language of a .cu source is a property of a source within a folder.
add_subdirectory(tests/emulated_gpu)

# isonorm_link_emulated_gpu(target): the target's devices are emulated. Its own objects come before the library's, so
# the linker takes no objects of gpu/ from the library.
function(isonorm_link_emulated_gpu target)
  if(NOT ISONORM_GPU_FORM STREQUAL "emulated")
    target_link_libraries(${target} PRIVATE isonorm_gpu_emulated ${CMAKE_DL_LIBS})
  else()
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:isonorm_gpu_emulated,INTERFACE_COMPILE_DEFINITIONS>)
  endif()
endfunction()

if(ISONORM_CUDA_FOUND)
  enable_language(CUDA)
  string(REGEX REPLACE "--?use_fast_math" "" CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS}")  # no flag undoes all of it
  if(ISONORM_GPU_FORM STREQUAL "ptx")
    set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  endif()
  find_package(CUDAToolkit REQUIRED)

  # Headers of the libraries that gpu/dynamic.cpp opens at run time: the toolkit's, or those next to the folders in
  # ISONORM_GPU_LIBRARIES (here or in the environment), such as pip's .../nvidia/cu13/lib.
  set(ISONORM_GPU_LIBRARIES "" CACHE STRING "Folders of libcublasLt.so.13 and libcudnn.so.9, with colons between them")
  add_library(isonorm_gpu_libraries INTERFACE)
  string(REPLACE ":" ";" folders "${ISONORM_GPU_LIBRARIES}:$ENV{ISONORM_GPU_LIBRARIES}")
  list(REMOVE_ITEM folders "" 0)
  set(beside ${CUDAToolkit_INCLUDE_DIRS})
  foreach(folder IN LISTS folders)
    list(APPEND beside ${folder}/../include ${folder}/include)
  endforeach()
  find_path(ISONORM_CUBLASLT_INCLUDE cublasLt.h HINTS ${beside})
  find_path(ISONORM_CUDNN_INCLUDE cudnn_version.h HINTS ${beside})
  mark_as_advanced(ISONORM_CUBLASLT_INCLUDE ISONORM_CUDNN_INCLUDE)
  if(ISONORM_CUBLASLT_INCLUDE)
    message(STATUS "GPU: cuBLASLt's headers are in ${ISONORM_CUBLASLT_INCLUDE}")
    target_compile_definitions(isonorm_gpu_libraries INTERFACE $<$<COMPILE_LANGUAGE:CXX>:ISONORM_CUBLASLT>)
    target_include_directories(isonorm_gpu_libraries SYSTEM INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${ISONORM_CUBLASLT_INCLUDE}>)
  else()
    message(STATUS "GPU: without cuBLASLt, there is no cublasLt.h (ISONORM_GPU_LIBRARIES names folders)")
  endif()
  set(version 0)
  if(ISONORM_CUDNN_INCLUDE)
    file(STRINGS ${ISONORM_CUDNN_INCLUDE}/cudnn_version.h lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
    string(REGEX REPLACE "[^0-9;]" "" version "${lines}")
    string(REPLACE ";" "." version "${version}")
  endif()
  if(version VERSION_GREATER_EQUAL 9.8 AND version VERSION_LESS 10)  # 9.8 can make plans for a described device
    message(STATUS "GPU: cuDNN's headers are of ${version}, in ${ISONORM_CUDNN_INCLUDE}")
    target_compile_definitions(isonorm_gpu_libraries INTERFACE $<$<COMPILE_LANGUAGE:CXX>:ISONORM_CUDNN>)
    target_include_directories(isonorm_gpu_libraries SYSTEM INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${ISONORM_CUDNN_INCLUDE}>)
  elseif(ISONORM_CUDNN_INCLUDE)
    message(STATUS "GPU: without cuDNN, its headers in ${ISONORM_CUDNN_INCLUDE} are of ${version}, expected 9.8 to 9")
  else()
    message(STATUS "GPU: without cuDNN, there is no cudnn.h (ISONORM_GPU_LIBRARIES names folders)")
  endif()

  isonorm_gpu_objects(isonorm_gpu_cuda)
  if(ISONORM_CHECK_CUDA)
    set_target_properties(isonorm_gpu_cuda PROPERTIES EXCLUDE_FROM_ALL OFF)
  endif()
  target_link_libraries(isonorm_gpu_cuda PRIVATE CUDA::cudart_static isonorm_gpu_libraries)
  # 445: a template parameter of a lambda that only its body uses. Relaxed: the standard library's constexpr functions.
  target_compile_options(isonorm_gpu_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 ${ISONORM_CUDA_FLAGS} -ftz=false -prec-div=true -prec-sqrt=true
                                                  -diag-suppress=445 --expt-relaxed-constexpr>)
  if(NOT ISONORM_GPU_FORM STREQUAL "cuda")  # only the PTX is executed, by tests/ptx
    target_compile_options(isonorm_gpu_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-O0 -Xptxas=-O0 --no-compress>)
  endif()
  set_target_properties(isonorm_gpu_cuda PROPERTIES CUDA_VISIBILITY_PRESET default)
  # Whether nvcc contracts a product and a sum depends on the code around them. It did so in one form of a kernel and
  # not in the other, so bits depended on the address of a tensor. Sources call std::fma instead. Without contraction
  # random numbers also have the CPU's bits. Dense products have only one form, so nvcc may contract there.
  set(contracted ${gpu_sources})
  list(FILTER contracted INCLUDE REGEX "/(attention|product)(_bf16)?\\.cu$")
  foreach(source IN LISTS gpu_sources)
    if(source MATCHES "\\.cu$" AND NOT source IN_LIST contracted)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
    endif()
  endforeach()
endif()
add_subdirectory(tests/ptx)

# isonorm_link_ptx_gpu(target): the target's device executes nvcc's PTX. As above, its own objects come before the
# library's.
function(isonorm_link_ptx_gpu target)
  if(NOT ISONORM_GPU_FORM STREQUAL "ptx")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:isonorm_gpu_cuda>)
    target_link_libraries(${target} PRIVATE isonorm_ptx ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX CUDA_RUNTIME_LIBRARY None)
  endif()
endfunction()
message(STATUS "GPU: ${ISONORM_GPU_FORM}")
