#!/usr/bin/env bash
# flags.sh SOURCE BUILD COMPILER: flags in the environment that change results or the target machine must have no
# effect. Checks every command of a build with such flags, then builds and runs arithmetic.cpp with them.
set -euo pipefail
source=$1 build=$2 compiler=$3
hostile="-Ofast -ffast-math -fassociative-math -freciprocal-math -ffinite-math-only -fno-signed-zeros -ffp-contract=fast"
[[ $(uname -m) != x86_64 ]] || hostile+=" -march=native"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="$hostile" \
  -DCMAKE_CUDA_FLAGS="--use_fast_math -Xcompiler=-ffast-math" -DISONORM_KERNELS=all >/dev/null

# Every command must undo fast math after the last flag that asks for it. Only kernels may contract, each for its own
# instruction set.
ninja -C "$build" -t commands all | awk '
  function need(flag) { if (!(flag in after)) { print "without " flag ": " $0; bad = 1 } }
  / -ffast-math / || / -Xcompiler=-ffast-math / {
    delete after
    cuda = / -Xcompiler=-ffast-math /
    for (i = 1; i <= NF; ++i) {
      if ($i ~ /^(-Xcompiler=)?-(Ofast|ffast-math|fassociative-math|freciprocal-math|ffinite-math-only|fno-signed-zeros)$/) delete after
      if ($i ~ /use_fast_math/) { print "use_fast_math: " $0; bad = 1 }
      sub(/^-Xcompiler=/, "", $i)
      if ($i ~ /^-march=/) march = $i
      if ($i ~ /^-ffp-contract=/) contract = $i
      after[$i]
    }
    if (/ -c /) {
      ++compiled
      need("-fno-fast-math"); need("-fno-associative-math"); need("-fno-reciprocal-math"); need("-fno-finite-math-only"); need("-fsigned-zeros")
      kernel = /-DISONORM_TARGET=avx/ || /test_math_avx/ || (/registers\.cpp/ && /mfpmath=sse/)  # on x86-64
      if ((contract == "-ffp-contract=off") == kernel) { print contract ": " $0; bad = 1 }
      if (/-DISONORM_TARGET=/ && march == "-march=native") { print march ": " $0; bad = 1 }
    } else {
      ++linked
      need("-fno-fast-math"); need("-O2")
    }
  }
  END {
    print compiled " files and " linked " programs and libraries with the flags of the project"
    exit bad || compiled < 500 || linked < 20
  }'
cmake --build "$build" --target arithmetic >/dev/null
"$build/tests/arithmetic"
