#!/usr/bin/env bash
# cores.sh PRINT_CORES ISONORM: tests the cores and threads of ranks that Open MPI has bound by default, on request, and not at all.
# Exit 77 if there is no Open MPI, only one core, or a quota of CPU time.
set -uo pipefail
print_cores=$1 isonorm=$2
command -v mpirun.openmpi >/dev/null && command -v lscpu >/dev/null || exit 77
unset OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY
cores=$(nproc)
(($(lscpu --parse=core,socket | grep -v '^#' | sort -u | wc -l) >= 2 && cores >= 2)) || exit 77
[[ $("$print_cores") == "threads $cores, "* ]] || exit 77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

fail() {
  printf '%s\n' "$*"
  exit 1
}
# says COUNT PATTERN WORD...: exactly COUNT ranks of mpirun WORD... PRINT_CORES print a line with the pattern.
says() {
  local count=$1 pattern=$2 said
  shift 2
  said=$(timeout 600 mpirun.openmpi "$@" "$print_cores" 2>&1) && (($(grep -cE "$pattern" <<<"$said") == count)) ||
    fail "mpirun $*: expected $count times $pattern, got $said"
}

one='[0-9]+([-+][0-9]+)?' # a core, or its two hyperthreads
says 1 "^threads $cores, main $one, workers " -np 1
folder=$(mktemp -d) && trap 'rm -r "$folder"' EXIT && ln -s "$print_cores" "$folder/other_name" || fail "no link"
print_cores=$folder/other_name says 1 "^threads $cores, main $one, workers " -np 1 # by a link
says 1 "^threads [12], main $one, " -np 1 --bind-to core
says 1 "^threads $cores, main .*, workers " -np 1 --bind-to none
says 2 "^threads $((cores / 2)), main $one, " -np 2
says 2 "^threads $((cores / 2)), main " -np 2 --bind-to none
says 2 "^threads 1, main " -np 2 --bind-to hwthread
last=$(taskset --cpu-list --pid $$ | sed 's/.*[^0-9]//')
says 1 "^threads 1, main $last, " -np 1 taskset --cpu-list "$last" # set by the user, after the launcher's binding

train=("$isonorm" train --data docs/numerics.md --model gpt --width 8 --depth 1 --heads 2 --context 8 --batch 4 --steps 2)
warning="rank 0 may run on 1 core and would use 2 .*--bind-to none"
said=$(OMP_NUM_THREADS=2 timeout 600 mpirun.openmpi -np 2 --bind-to hwthread "${train[@]}" 2>&1) || fail "train: $said"
(($(grep -c "^isonorm train: $warning" <<<"$said") == 1)) || fail "a narrow binding: $said"
grep -q '^2 ranks (2 on this machine) with 2 threads each on 1 core$' <<<"$said" || fail "a narrow binding: $said"
said=$(timeout 600 mpirun.openmpi -np 2 "${train[@]}" 2>&1) || fail "train: $said"
grep -q "may run on" <<<"$said" && fail "the default: $said"
grep -qE "^2 ranks \(2 on this machine\) with $((cores / 2)) threads? each on $cores cores\$" <<<"$said" || fail "the default: $said"
