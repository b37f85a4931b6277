#!/usr/bin/env bash
# run.sh PROGRAM: for each launcher that is installed, runs the suite on 1, 2, 3, 4 and 7 processes and a backward pass that calls the group on
# 2 and 3. Then lets one rank fail and reads the messages of all ranks. Exit 77 if no launcher is installed.
set -uo pipefail
program=$1 host=$(uname -n)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1

fail() {
  printf '%s\n' "$*"
  exit 1
}

# ranks N WORD...: the program on N processes; what it says is in $said, its exit code in $code.
ranks() {
  local n=$1
  shift
  case $launcher in
    mpirun.openmpi) said=$(timeout 600 mpirun.openmpi --oversubscribe --bind-to none -np "$n" $program "$@" 2>&1) ;;
    mpirun.mpich) said=$(timeout 600 mpirun.mpich -np "$n" $program "$@" 2>&1) ;;
  esac
  code=$?
}

found=no
for launcher in mpirun.openmpi mpirun.mpich; do
  command -v $launcher >/dev/null || continue
  found=yes
  for n in 1 2 3 4 7; do
    ranks $n
    [[ $code == 0 ]] && (($(grep -c "^rank [0-9] of $n$" <<<"$said") == n)) || fail "$launcher -np $n: exit $code, $said"
  done
  for n in 2 3; do # a rank's threads take turns in MPI
    ranks $n backward 2
    [[ $code == 0 ]] || fail "$launcher -np $n, a backward that calls the group: exit $code, $said"
  done
  # A variable that another launcher has left, and a library that is not the launcher's.
  case $launcher in
    mpirun.openmpi) other=(env PMI_SIZE=1) wrong=(env PMI_SIZE=9 PMI_RANK=0) ;;
    mpirun.mpich) other=(env OMPI_COMM_WORLD_SIZE=1) wrong=(env OMPI_COMM_WORLD_SIZE=9) ;;
  esac
  whole=$program
  program="${other[*]} $whole" ranks 3
  [[ $code == 0 ]] && (($(grep -c "^rank [0-9] of 3$" <<<"$said") == 3)) || fail "$launcher, ${other[*]}: exit $code, $said"
  program="${wrong[*]} $whole" ranks 3
  [[ $code != 0 ]] && ! grep -q "^rank [0-9] of" <<<"$said" || fail "$launcher, ${wrong[*]}: exit $code, $said"
  while read -r word line; do
    limit=600
    [[ $word != sleeps ]] || limit=5
    ISONORM_TIMEOUT=$limit ranks 3 "$word"
    [[ $code != 0 && $code != 124 ]] || fail "$launcher, rank 1 $word: exit $code, $said"
    (($(grep -c "^rank_processes: " <<<"$said") <= 1)) || fail "$launcher, rank 1 $word: more than a line, $said"
    [[ -z $line ]] || grep -qF "$line" <<<"$said" || fail "$launcher, rank 1 $word: no '$line' in $said"
    for _ in {1..1200}; do  # the launcher ends before those that it ends
      pgrep -f "^$whole" >/dev/null || continue 2
      sleep 0.5
    done
    fail "$launcher, rank 1 $word: a rank goes on"
  done <<END
throws rank_processes: rank 1 on $host: no such file
ends rank_processes: rank 1 on $host calls nothing more
sleeps rank_processes: all_reduce: rank 1 on $host has not come within 5 s
other rank_processes: rank 1 on $host calls barrier
size rank_processes: rank 1 on $host calls all_reduce (its call 2) of 10 numbers of f32, rank 0 on $host all_reduce (its call 2) of 1000
killed
END
done
[[ $found == yes ]] || exit 77
