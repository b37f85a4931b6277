#!/bin/sh
# Compiles every source outside of the library and the tests with another compiler, warnings as errors, without output.
# (consumer_subdirectory compiles the library.)  clang.sh SOURCE BUILD COMPILER
set -e
cmake -S "$1" -B "$2" -G Ninja -DCMAKE_CXX_COMPILER="$3" -DCMAKE_BUILD_TYPE=None -DISONORM_WERROR=ON -DISONORM_GPU=off -DISONORM_BUILD_TESTS=OFF \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
cmake --build "$2" --target isonorm_headers $(cd "$2" && ninja -t targets all | grep -o '^[^:]*\.pch') >/dev/null
cd "$2"
# One command per line. If several targets compile a file, only the first command.
sed -n 's/^  "command": "\(.*\)",$/\1 -fsyntax-only/p' compile_commands.json | sed 's/\\\(["\\]\)/\1/g' |
  awk '{ for (i = 1; i < NF; ++i) if ($i == "-c") file = $(i + 1) }
       file ~ /\/(tools|lab|examples|benchmarks)\/[^ ]*(\.cpp|_cxx\.cxx)$/ && !seen[file]++' >commands
xargs -P "$(getconf _NPROCESSORS_ONLN)" -d '\n' -n 1 sh -c <commands
echo "$(wc -l <commands) files without a warning"
