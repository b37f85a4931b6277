#!/usr/bin/env bash
# refused/run.sh COMPILER: that programs which must not compile are refused with one error, whose sentence says what to write.
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
    elif [ "$(grep -c 'error:' <<< "$said")" != 1 ]; then
      complain "$file, case $number: more than one error: $said"
    fi
  done <<< "$cases"
done

# Names of functions that a script calls are not those of classes that this library's headers take from std. (logical_and, logical_or and
# logical_not are in <functional>, and std is a namespace, so a script that wants these says isonorm::.)
names=$(
  echo '#include "isonorm.h"'
  echo 'using namespace std;'
  echo 'using namespace isonorm;'
  sed -n 's/^| `\([a-z_0-9]*\)(.*/\1/p' docs/ops.md | sort -u | grep -Ev '^(logical_.*|std)$' |
    awk '{ print "auto call" NR "() { return " $1 "(nullptr); }" }'
)
said=$("$compiler" -std=c++20 -fsyntax-only -I. -x c++ - <<< "$names" 2>&1 | grep -E 'reference to .* is ambiguous') || true
[ -z "$said" ] || complain "a name of docs/ops.md is ambiguous behind using namespace std: $said"
exit $failed
