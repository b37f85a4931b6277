#!/usr/bin/env bash
# kill.sh ISONORM FOLDER [TIMES]: 2 to 4 ranks that save 10 MB after every step. Every other time the first, which saves, is killed while it
# writes, else a random one at a random moment. Each time all ranks end, the checkpoint is whole, its step has not fallen, and training goes
# on from it. Exit 77 where no launcher is there.
set -uo pipefail
isonorm=$(realpath "$1") folder=$2 times=${3:-5}
command -v mpirun.openmpi >/dev/null || exit 77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
rm -rf "$folder" && mkdir -p "$folder" && cp docs/numerics.md "$folder/text" && cd "$folder" || exit 1
options=(--data text --model gpt --width 128 --depth 2 --heads 2 --context 16 --batch 12 --dtype f64 --schedule constant --checkpoint c -q)

fail() {
  ((${#ranks[@]})) && kill -KILL "${ranks[@]}" 2>/dev/null
  printf 'kill %s: %s\n' "$i" "$*"
  exit 1
}
step() { grep -aom1 '"value.step":"[0-9]*"' c 2>/dev/null | tr -dc 0-9; }
# within SECONDS COMMAND...: whether it succeeds by then.
within() {
  local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
  until "${@:2}"; do
    ((${EPOCHREALTIME/./} < end)) || return 1
    sleep 0.01
  done
}
started() { mapfile -t ranks < <(pgrep -P $launcher) && ((${#ranks[@]} == n)); }
writes() { # looked at as often as can be
  for _ in {1..2000}; do compgen -G 'c.tmp.*' >/dev/null && return; done
  return 1
}
saved() { [[ $(step) -gt $before ]]; }
# Whether none of those processes is there, or only as its exit code.
ended() { ! ps -o stat= -p "$(IFS=, && printf '%s' "$*")" | grep -qv '^Z'; }

i=0 ranks=() left=0 stuck=0
"$isonorm" train "${options[@]}" --steps 1 >/dev/null || fail 'the first step'
for ((i = 1; i <= times; ++i)); do
  n=$((2 + i % 3)) before=$(step)
  mpirun.openmpi --oversubscribe --bind-to none -np $n "$isonorm" train "${options[@]}" --extend --steps 1000000 --save-every 1 --zero $((i / 2 % 4)) \
    >/dev/null 2>told &
  launcher=$!
  within 600 started || fail "no $n ranks: $(cat told)"
  if ((i % 2)); then
    within 600 saved || fail "does not go on from step $before: $(cat told)"
    victim=${ranks[0]}
    within 600 writes || fail 'saves nothing more'
  else
    victim=${ranks[RANDOM % n]}
    sleep 0.$((RANDOM % 8))$((RANDOM % 10))
  fi
  kill -KILL "$victim" || fail "a rank has ended before: $(cat told)"
  within 600 ended "${ranks[@]}" || fail "a rank goes on"
  ranks=()
  # Open MPI's launcher may wait for ever for ranks that are killed while they connect to it.
  within 20 ended $launcher || { kill -KILL $launcher && stuck=$((stuck + 1)); }
  wait $launcher && fail 'the launcher says that all is well'
  compgen -G 'c.tmp.*' >/dev/null && left=$((left + 1))
  now=$(step)
  ((now >= before)) || fail "step '$now' behind step $before"
  "$isonorm" train "${options[@]}" --extend --steps $((now + 1)) >/dev/null 2>told || fail "is not whole: $(cat told)"
  [[ $(step) == $((now + 1)) ]] || fail "step '$(step)' behind $now and one more"
done
((left * 4 >= times)) || fail "only $left of $times kills were in the middle of a save"
printf '%s kills, %s of them in the middle of a save, %s launchers that did not end: step %s\n' "$times" $left $stuck "$(step)"
