#!/usr/bin/env bash
# paths.sh SOURCE BUILD COMPILER FILE...: libraries and programs must not contain the name of the folder that they were
# built in. Searches every FILE for SOURCE. Then compiles one object of the library in two folders, with debug
# information, and compares the two.
set -euo pipefail
source=$1 build=$2 compiler=$3
fail() { printf 'paths.sh: %s\n' "$*" >&2; exit 1; }
for file in "${@:4}"; do
  ! LC_ALL=C grep -qaF "$source/" "$file" || fail "$file holds $source/"
done

rm -rf "$build"
object='CMakeFiles/isonorm_fast.dir/Unity/unity_optim_streams_distributed_distributed/parallel_cxx.cxx.o'
for folder in "$build/one" "$build/with a space/and longer"; do
  mkdir -p "$folder"
  (cd "$source" && cp -r CMakeLists.txt isonorm.h cmake $(ls -d */*.h */*/*.h */CMakeLists.txt | cut -d/ -f1 | sort -u | grep -vx build) "$folder")
  cmake -S "$folder" -B "$folder/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DISONORM_UNITY=ON \
    -DISONORM_GPU=off -DISONORM_BUILD_TESTS=OFF -DISONORM_BUILD_TOOLS=OFF -DISONORM_BUILD_EXAMPLES=OFF -DISONORM_BUILD_BENCHMARKS=OFF >/dev/null
  CCACHE_DISABLE=1 ninja -C "$folder/build" "$object" >/dev/null
done
cmp "$build/one/build/$object" "$folder/build/$object" || fail 'two folders, two objects'
