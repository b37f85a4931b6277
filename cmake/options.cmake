# Flags of the project's own targets. Nothing here reaches a user's targets.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND PROJECT_IS_TOP_LEVEL)
  # The sloppiness is what ccache asks for where headers are precompiled. Without the depend mode it takes a precompiled
  # header from before a comment was changed: then `#pragma once` does not know that header again, and it is included twice.
  # The namespace leaves out what was cached without that mode.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_NAMESPACE=isonorm
                                  CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

add_library(isonorm_flags INTERFACE)
target_compile_features(isonorm_flags INTERFACE cxx_std_20)
# clang reports every `omp simd` loop that it does not vectorise, also where that is as it should be.
target_compile_options(isonorm_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>)
# Without errno and trapping the compiler may vectorise square roots and selections; results stay IEEE.
# No other library replaces a function of this one, so one may be inlined where it is called in its own file.
target_compile_options(
  isonorm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-fno-math-errno;-fno-trapping-math;-fopenmp-simd;\
-fno-semantic-interposition;$<$<BOOL:${ISONORM_WERROR}>:-Werror>>")
# Off x86-64 the base instruction set has fused multiply-adds. It contracts nothing there either: core/formulas/distributions.h relies on it.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(isonorm_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endif()
# nvcc's host compiler sees code that nvcc has written.
target_compile_options(isonorm_flags INTERFACE
                       "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall;$<$<BOOL:${ISONORM_WERROR}>:-Werror=all-warnings>>")

# What most files of the library, of the program and of the tests include.
set(ISONORM_PRECOMPILED <algorithm> <cmath> <functional> <map> <memory> <optional> <sstream> <string> <variant> <vector>)
foreach(header autograd/grad_mode autograd/ops/pointwise autograd/ops/reduce autograd/ops/shape core/printed core/tensor nn/module
               streams/parametrize streams/stream)
  list(APPEND ISONORM_PRECOMPILED ${PROJECT_SOURCE_DIR}/${header}.h)
endforeach()

# The instruction sets that the kernel sources are compiled for. Of all a machine takes its best. The best of this one alone takes a third of
# the time. Where all are there for the tests, only that one is optimised.
set(ISONORM_KERNELS all CACHE STRING "Instruction sets of the CPU kernels: all, native (this machine's best alone) or tested (all; others unoptimised)")
set_property(CACHE ISONORM_KERNELS PROPERTY STRINGS all native tested)
if(NOT ISONORM_KERNELS MATCHES "^(all|native|tested)$")
  message(FATAL_ERROR "ISONORM_KERNELS is \"${ISONORM_KERNELS}\"; expected all, native or tested")
endif()
set(ISONORM_TARGETS base)
set(ISONORM_FLAGS_base "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND ISONORM_TARGETS avx2 avx512)
  set(ISONORM_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(ISONORM_FLAGS_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512)
  set(ISONORM_FLAGS_avx512_bf16 ${ISONORM_FLAGS_avx512} -mavx512bf16 -mamx-tile -mamx-bf16)
endif()
set(cpu "")
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo cpu REGEX "^flags" LIMIT_COUNT 1)
endif()
foreach(target IN LISTS ISONORM_TARGETS)  # the best one last; what each asks of a machine: core/kernels/isa_choice.cpp
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
