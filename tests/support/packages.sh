#!/usr/bin/env bash
# Builds the Debian packages of SOURCE in BUILD, and looks at them: packages.sh SOURCE BUILD OPTION... (of cmake)
set -euo pipefail
cd "$1"
cmake --preset packages -B "$2" "${@:3}" >/dev/null
cmake --build "$2" --parallel 2
rm -rf "$2/packages"
(cd "$2" && cpack)
packaging/check "$2/packages"
