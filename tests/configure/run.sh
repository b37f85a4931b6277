#!/usr/bin/env bash
# run.sh SOURCE WORK COMPILER CMAKE_OPTION...
# Configures the project as on other people's machines and in their projects. Scripts of a few lines stand for an old compiler, nvcc and ccache.
set -euo pipefail
source=$1 work=$2 compiler=$3 options=("${@:4}")
unset CUDACXX CUDAARCHS CMAKE_CXX_COMPILER_LAUNCHER CMAKE_BUILD_TYPE
rm -rf "$work"
mkdir -p "$work"
cd "$work"
fail() { printf 'configure: %s\n' "$*" >&2 && exit 1; }

# program NAME: writes standard input as a shell script.
program() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/bin/sh'; cat; } >"$1"
  chmod +x "$1"
}
# configure NAME [OPTION...]: into the folder NAME. What CMake says, as one line, goes to NAME.txt.
configure() {
  local status=0
  cmake -S "$source" -B "$1" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DISONORM_KERNELS=native -DISONORM_GPU=off \
    -DISONORM_BUILD_{TESTS,TOOLS,EXAMPLES,BENCHMARKS}=OFF "${options[@]}" "${@:2}" >"$1.log" 2>&1 || status=$?
  tr -s ' \n' ' ' <"$1.log" >"$1.txt"
  return $status
}
configures() { configure "$@" || fail "$1 failed: $(cat "$1.log")"; }
refuses() { ! configure "$@" || fail "$1 was not refused: $(cat "$1.log")"; }
says() { grep -qF -- "$2" "$1.txt" || fail "$1: expected '$2': $(cat "$1.log")"; }
# launches NAME PROGRAM: the generated build (Ninja or make) starts compilers through PROGRAM.
launches() { grep -rqF --include={rules,build}.ninja --include=build.make "$work/$2" "$1"; }

# An old compiler.
program old/g++ <<<"exec '$compiler' -U__GNUC__ -D__GNUC__=11 -U__clang_major__ -D__clang_major__=13 \"\$@\""
refuses old_compiler -DCMAKE_CXX_COMPILER="$work/old/g++"
says old_compiler "isonorm needs g++ 12, clang++ 14 or newer; $work/old/g++ is "

# An old nvcc. /usr/local/cuda would come first.
program nvcc/nvcc <<'S'
echo "$*" >>"$(dirname "$0")/log"
[ "$1" = --version ] && echo 'Cuda compilation tools, release 11.8, V11.8.89' && exit
echo "nvcc fatal   : Value 'c++20' is not defined for option 'std'" && exit 1
S
old_nvcc() { PATH=$work/nvcc:$PATH "$1" "$2" -DCMAKE_IGNORE_PATH=/usr/local/cuda/bin "${@:3}"; }
old_nvcc configures nvcc_auto -DISONORM_GPU=auto
says nvcc_auto "GPU: $work/nvcc/nvcc (release 11.8) does not compile C++20 for 80;90a: nvcc fatal : Value 'c++20' is not defined for option 'std'"
says nvcc_auto '-- GPU: off'
old_nvcc refuses nvcc_cuda -DISONORM_GPU=cuda
says nvcc_cuda "ISONORM_GPU=cuda: $work/nvcc/nvcc (release 11.8) does not compile C++20 for 80;90a"

# Architectures: our option, else CMake's, else CMake's variable of the environment.
# asks NAME FLAGS: nvcc was called with these flags and no others for devices.
asks() {
  local flags
  flags=$(sed 's/.*-std=c++20 \(.*\) .*nvcc.cu .*/\1/' "$1.log")
  [[ ${flags//-gencode=arch=compute_/} == "$2" ]] || fail "$1: nvcc is called with $flags"
}
echo "set(PROJECT_BINARY_DIR \${CMAKE_CURRENT_LIST_DIR}/\${NAME}) 
include($source/cmake/nvcc.cmake)
message(\"\${ISONORM_CUDA_MISSING}\")" >nvcc.cmake
architectures() {
  rm -f nvcc/log
  CUDACXX=$work/nvcc/nvcc cmake -D NAME="$1" "${@:2}" -P nvcc.cmake >"$1.txt" 2>&1 || fail "$1: $(cat "$1.txt")"
  grep -e -std nvcc/log >"$1.log"
}
architectures by_default
asks by_default '80,code=compute_80 80,code=sm_80 90a,code=sm_90a'
CUDAARCHS=86 architectures by_environment
asks by_environment '86,code=compute_86 86,code=sm_86'
CUDAARCHS=86 architectures by_cmake '-DCMAKE_CUDA_ARCHITECTURES=87-real;89;100-virtual'
asks by_cmake '87,code=sm_87 89,code=sm_89 100,code=compute_100'
architectures by_option -DCMAKE_CUDA_ARCHITECTURES=86 -DISONORM_CUDA_ARCHITECTURES=120
asks by_option '120,code=compute_120 120,code=sm_120'
architectures by_word -DCMAKE_CUDA_ARCHITECTURES=native
asks by_word '80,code=compute_80 80,code=sm_80 90a,code=sm_90a'
says by_word "CMAKE_CUDA_ARCHITECTURES has 'native': isonorm takes numbers from 80 on, and is compiled for 80;90a"

# ccache, and a launcher of the user's own.
program good/ccache <<<'exec "$@"'
program bad/ccache <<<'echo "ccache: error: Failed to create directory /root/.cache/ccache: Permission denied" >&2; exit 1'
program launcher <<<'exec "$@"'
PATH=$work/good:$PATH configures with_ccache
launches with_ccache good/ccache || fail 'ccache is not used'
PATH=$work/bad:$PATH configures unwritable_cache
says unwritable_cache 'ccache is not used: ccache: error: Failed to create directory /root/.cache/ccache: Permission denied'
! launches unwritable_cache bad/ccache || fail 'ccache is used, which cannot write its cache'
PATH=$work/good:$PATH CMAKE_CXX_COMPILER_LAUNCHER=$work/launcher configures with_launcher
launches with_launcher launcher || fail "the user's launcher is not used"
! launches with_launcher good/ccache || fail "ccache is used instead of the user's launcher"

# CMAKE_UNITY_BUILD joins files by our groups, and no kernels.
configures unity -DCMAKE_UNITY_BUILD=ON
grep -q 'Unity/unity_core core' unity/compile_commands.json || fail 'CMAKE_UNITY_BUILD is ignored'
! grep -q 'Unity/unity_[0-9]' unity/compile_commands.json || fail 'files of no group are compiled together'

# Objects of an LTO build hold machine code. readelf, unlike nm, does not read LTO's own code.
configures lto -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
grep -qF -e -flto lto/compile_commands.json || fail 'LTO was not asked for'
(cd lto && eval "$(sed -n 's/^ *"command": "\(.*core\/error\.cpp\)",$/\1/p' compile_commands.json | sed 's/-o [^ ]*/-o error.o/')")
readelf -sW lto/error.o | grep -q ' FUNC *GLOBAL .*raise' || fail 'an object of an LTO build holds no machine code'

# A part of another project, which stays as it is: only find modules and CMake itself add variables without our name.
configures parent -S "$source/tests/configure/parent" -DISONORM_SOURCE="$source"
changed=$(tr ';' '\n' <parent/changed.txt |
  grep -vE '^((ISONORM|isonorm|FETCHCONTENT|ZLIB|nlohmann_json|__cmake|FIND_PACKAGE_MESSAGE|CMAKE_HAVE|CMAKE_PROJECT_VERSION)(_|$)|names?$|property$)' || :)
[[ -z $changed ]] || fail "a parent project is changed: $changed"
grep 'core/error.cpp' parent/compile_commands.json | grep -qE -e '-O3 .*-w ' || fail 'in a project without a build type isonorm is not optimised, or warns'

# The header comes from beside OpenBLAS's library. A header of another BLAS is refused.
mkdir -p blas/{lib,include}/openblas-pthread
echo 'int cblas_sgemm();' >blas/include/cblas.h # another BLAS's
echo 'extern "C" { int cblas_sgemm(); int openblas_get_config(); int openblas_get_corename(); int openblas_get_parallel(); }' \
  >blas/include/openblas-pthread/cblas.h
{ cat blas/include/openblas-pthread/cblas.h
  echo 'int cblas_sgemm() { return 0; } int openblas_get_config() { return 0; } int openblas_get_corename() { return 0; } int openblas_get_parallel() { return 0; }'
} | "$compiler" -x c++ - -shared -fPIC -o blas/lib/openblas-pthread/libopenblas.so
ln -s openblas-pthread/libopenblas.so blas/lib/
configures beside -DISONORM_OPENBLAS_LIBRARY="$work/blas/lib/libopenblas.so"
grep -qxF "ISONORM_OPENBLAS_INCLUDE:PATH=$work/blas/include/openblas-pthread" beside/CMakeCache.txt || fail "the header is not the library's own"
refuses other_blas -DISONORM_OPENBLAS_LIBRARY="$work/blas/lib/libopenblas.so" -DISONORM_OPENBLAS_INCLUDE="$work/blas/include"
says other_blas "$work/blas/lib/libopenblas.so with $work/blas/include/cblas.h is not an OpenBLAS with cblas"
