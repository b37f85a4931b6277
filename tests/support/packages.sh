#!/usr/bin/env bash
# packages.sh SOURCE BUILD OPTION... (of cmake): builds the Debian packages of SOURCE in BUILD and checks them.
set -euo pipefail
cd "$1"
cmake --preset packages -B "$2" "${@:3}" >/dev/null
cmake --build "$2" --parallel 2
rm -rf "$2/packages"
(cd "$2" && cpack)
scripts/packaging/check "$2/packages"
