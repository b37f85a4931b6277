#!/usr/bin/env bash
# refused/run.sh COMPILER: that programs which must not compile are refused with the sentence that says what to write.
#
# Each file beside this one has the cases `#if REFUSED == 1  // SENTENCE`, `#elif REFUSED == 2  // SENTENCE`, and so on. The
# file compiles without a case; with case N it does not, and the compiler prints its sentence.
set -eu
compiler=$1
cd "$(dirname "$0")/../.."

failed=0
complain() {
  echo "refused: $1" >&2
  failed=1
}

for file in tests/refused/*.cpp; do
  compile() { "$compiler" -std=c++20 -I. -fsyntax-only -DREFUSED="$1" "$file" 2>&1; }
  said=$(compile 0) || complain "$file does not compile without a case: $said"
  cases=$(sed -nE 's,^#(el)?if REFUSED == ([0-9]+)  // (.+),\2 \3,p' "$file")
  [ -n "$cases" ] || complain "$file has no case"
  while read -r number sentence; do
    if said=$(compile "$number"); then
      complain "$file, case $number compiles"
    elif [[ "$said" != *"$sentence"* ]]; then
      complain "$file, case $number: expected '$sentence' in: $said"
    fi
  done <<< "$cases"
done
exit $failed
