#!/usr/bin/env bash
# kernel_symbols.sh FOLDER INDEX:TARGET ...: checks that no function of one instruction set is compiled for another one,
# too. A source of core/cpu is compiled for each instruction set, and each object sees the addresses of all
# (core/kernels/kernel.h). A generic lambda in a template<Isa> would then be compiled for all of them in each object. If
# it is not inlined, the linker keeps the first, which may be compiled for a lesser machine. Such bodies belong into a
# function of the unnamed namespace.
set -euo pipefail
folder=$1
shift
symbols() { nm "$1" | awk '$2 ~ /[WVu]/ { print $3 }' | sort -u; }
failed=0
for target; do
  index=${target%%:*} name=${target#*:}
  for object in "$folder/isonorm_kernels_$name.dir"/core/cpu/*.o; do
    for other in "$folder"/isonorm_kernels_*.dir/core/cpu/"$(basename "$object")"; do
      [[ $other == "$object" ]] && continue
      both=$(comm -12 <(symbols "$object") <(symbols "$other") | grep "3IsaE$index" || true)
      [[ -z $both ]] && continue
      echo "$(basename "$object"): of $name, and in $(basename "$(dirname "$(dirname "$(dirname "$other")")")"):"
      head -3 <<<"$both" | c++filt | cut -c1-200
      failed=1
    done
  done
done
exit $failed
