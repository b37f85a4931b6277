# Compilers, the compiler cache, and the flags of the project's own targets. Nothing here reaches a user's targets.

set(least_GNU 12)  # __builtin_shufflevector
set(least_Clang 14)
if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS "${least_${CMAKE_CXX_COMPILER_ID}}")
  message(FATAL_ERROR "isonorm needs g++ ${least_GNU}, clang++ ${least_Clang} or newer; ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} "
                      "${CMAKE_CXX_COMPILER_VERSION} (-DCMAKE_CXX_COMPILER=... names another one)")
endif()

# ccache, unless the user names a launcher or ccache cannot write its cache.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(ISONORM_CCACHE ccache)
  mark_as_advanced(ISONORM_CCACHE)
endif()
if(ISONORM_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/ccache)
  file(WRITE ${probe}.cpp "")
  execute_process(COMMAND ${ISONORM_CCACHE} ${CMAKE_CXX_COMPILER} -c ${probe}.cpp -o ${probe}.o RESULT_VARIABLE result OUTPUT_QUIET
                  ERROR_VARIABLE error ERROR_STRIP_TRAILING_WHITESPACE)
  if(result EQUAL 0)
    # ccache asks for this sloppiness if headers are precompiled. Without the depend mode it takes a precompiled header
    # from before a comment was changed: `#pragma once` then does not know that header again, and it is included twice.
    # The namespace leaves out objects that were cached without the depend mode.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_NAMESPACE=isonorm
                                    CCACHE_SLOPPINESS=pch_defines,time_macros ${ISONORM_CCACHE})
    if(NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CUDA_COMPILER_LAUNCHER})
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${ISONORM_CCACHE})
    endif()
  else()
    message(STATUS "ccache is not used: ${error}")
  endif()
endif()

# CMake's own unity builds put any eight files together. Names in unnamed namespaces are unique only within the groups
# of ISONORM_UNITY.
if(CMAKE_UNITY_BUILD)
  set(ISONORM_UNITY ON)
  set(CMAKE_UNITY_BUILD OFF)
endif()

# The configurations with our own optimisation levels: Release, and none (an enclosing project may name none).
set(ISONORM_OPTIMISED $<CONFIG:Release,>)

# Flags from the environment or from an enclosing project do not change results. A directory's options follow these
# flags and precede the options of its targets. The first line undoes -ffast-math, -Ofast and their parts. Only kernels
# (below) contract products to fused multiply-adds. core/formulas/distributions.h relies on this, and some instruction
# sets have fused multiply-adds from the start (64-bit ARM, -march=x86-64-v3).
set(ISONORM_ARITHMETIC
    -fno-fast-math -fno-unsafe-math-optimizations -fno-associative-math -fno-reciprocal-math -fno-finite-math-only -fsigned-zeros
    -fno-rounding-math -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND ISONORM_ARITHMETIC -fno-single-precision-constant -fno-cx-limited-range -fno-allow-store-data-races)
else()
  list(APPEND ISONORM_ARITHMETIC -Wno-overriding-t-option)  # clang warns if one flag overrides another
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND ISONORM_ARITHMETIC -mfpmath=sse)
endif()
foreach(flag IN LISTS ISONORM_ARITHMETIC)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${flag}>)
endforeach()
# Libraries and programs do not contain the path of their build folder. If two maps match, the last one counts. In Debug
# they do contain it, so that a debugger finds the sources from any folder, and breakpoints by absolute paths.
set(ISONORM_PATHS -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
foreach(flag IN LISTS ISONORM_PATHS)
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:${flag}>
                      $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>>:-Xcompiler=${flag}>)
endforeach()
# A program or a shared library that is linked with -ffast-math or -Ofast turns subnormal numbers off in its process.
add_link_options(-fno-fast-math -fno-unsafe-math-optimizations -O2)

add_library(isonorm_flags INTERFACE)
target_compile_features(isonorm_flags INTERFACE cxx_std_20)
# clang reports every `omp simd` loop that it does not vectorise, even if that is intended.
target_compile_options(isonorm_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>)
# Without errno and trapping the compiler may vectorise square roots and selections; results stay IEEE.
# No other library replaces a function of this one, so functions may be inlined within their own file.
# An enclosing project may be strict about its own code, so it gets no warnings about ours.
set(warnings -Wall -Wextra)
if(NOT PROJECT_IS_TOP_LEVEL AND NOT ISONORM_WERROR)
  set(warnings -w)
endif()
target_compile_options(
  isonorm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings};-fno-math-errno;-fno-trapping-math;-fopenmp-simd;\
-fno-semantic-interposition;$<$<BOOL:${ISONORM_WERROR}>:-Werror>>")
# An installed archive of an LTO build holds machine code, too, so that any program can link it. clang before 17 can
# have only one of the two.
if(ISONORM_INSTALL AND NOT BUILD_SHARED_LIBS)
  set(archived -ffat-lto-objects)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
    set(archived -fno-lto)
  endif()
  target_compile_options(isonorm_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${archived}>)
endif()
# nvcc's host compiler warns about code that nvcc has written, so it gets fewer warnings.
target_compile_options(isonorm_flags INTERFACE
                       "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall;$<$<BOOL:${ISONORM_WERROR}>:-Werror=all-warnings>>")

# Headers that most files of the library, the program and the tests include.
set(ISONORM_PRECOMPILED <algorithm> <cmath> <functional> <map> <memory> <optional> <sstream> <string> <variant> <vector>)
foreach(header autograd/grad_mode autograd/ops/pointwise autograd/ops/reduce autograd/ops/shape core/printed core/tensor nn/module)
  list(APPEND ISONORM_PRECOMPILED ${PROJECT_SOURCE_DIR}/${header}.h)
endforeach()

# The instruction sets of the kernels. A machine uses the best one that it has. Building only this machine's best takes
# a third of the time. `tested` builds all, but optimises only the best.
set(ISONORM_KERNELS all CACHE STRING "Instruction sets of the CPU kernels: all, native (this machine's best alone) or tested (all; others unoptimised)")
set_property(CACHE ISONORM_KERNELS PROPERTY STRINGS all native tested)
if(NOT ISONORM_KERNELS MATCHES "^(all|native|tested)$")
  message(FATAL_ERROR "ISONORM_KERNELS is \"${ISONORM_KERNELS}\"; expected all, native or tested")
endif()
set(ISONORM_TARGETS base)
set(ISONORM_FLAGS_base "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND ISONORM_TARGETS avx2 avx512)
  set(ISONORM_CONTRACT -ffp-contract=$<IF:$<CXX_COMPILER_ID:Clang>,on,fast>)  # each compiler's default
  set(ISONORM_FLAGS_base -march=x86-64)  # replaces an -march of the environment
  set(ISONORM_FLAGS_avx2 ${ISONORM_FLAGS_base} -mavx2 -mfma -mf16c ${ISONORM_CONTRACT})
  set(ISONORM_FLAGS_avx512 ${ISONORM_FLAGS_base} -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512
                           ${ISONORM_CONTRACT})
  set(ISONORM_FLAGS_avx512_bf16 ${ISONORM_FLAGS_avx512} -mavx512bf16 -mamx-tile -mamx-bf16)
endif()
set(cpu "")
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo cpu REGEX "^flags" LIMIT_COUNT 1)
endif()
foreach(target IN LISTS ISONORM_TARGETS)  # the last one is the best; requirements as in core/kernels/isa_choice.cpp
  set(needs_avx2 avx2 fma)
  set(needs_avx512 avx2 fma avx512f avx512dq avx512bw avx512vl)
  set(best ${target})
  foreach(feature IN LISTS needs_${target})
    if(NOT "${cpu} " MATCHES " ${feature} ")
      set(best ${ISONORM_NATIVE})
    endif()
  endforeach()
  set(ISONORM_NATIVE ${best})
endforeach()
if(ISONORM_KERNELS STREQUAL "native")
  set(ISONORM_TARGETS ${ISONORM_NATIVE})
  target_compile_definitions(isonorm_flags INTERFACE ISONORM_ONLY=${ISONORM_NATIVE})
endif()
