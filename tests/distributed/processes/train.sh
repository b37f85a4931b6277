#!/usr/bin/env bash
# train.sh ISONORM FOLDER: `isonorm train` on several processes is the training of one, in files and in what it prints. Exit 77 where
# no launcher is there.
set -uo pipefail
isonorm=$1 folder=$2 host=$(uname -n)
command -v mpirun.openmpi >/dev/null || exit 77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
rm -rf "$folder" && mkdir -p "$folder" && cp docs/numerics.md "$folder/text" && cd "$folder" || exit 1
options=(--data text --model gpt --width 16 --depth 2 --heads 2 --context 16 --batch 12 --dtype f64 --ema 0.9 --evaluate-every 8)

fail() {
  printf '%s\n' "$*"
  exit 1
}
mpi() { timeout 600 mpirun.openmpi --oversubscribe --bind-to none -np "$@"; }
train() { "$isonorm" train "${options[@]}" "$@"; }
equal() { "$isonorm" compare "$1" "$2" | grep -q 'equal to the last bit' || fail "$1 and $2 are not equal to the last bit"; }

# Ranks are the parts of one process, to the last bit; one of them prints, logs and saves.
train -q --steps 12 --accumulate 3 --checkpoint parts --ema-file parts.ema >parts.said || fail 'parts'
mpi 3 "$isonorm" train "${options[@]}" -q --steps 12 --checkpoint ranks --ema-file ranks.ema --log log >ranks.said 2>ranks.told ||
  fail "3 ranks: $(cat ranks.told)"
equal parts ranks
mpi 3 "$isonorm" train "${options[@]}" -q --steps 12 --checkpoint shared --zero 1 >/dev/null 2>told || fail "--zero 1: $(cat told)"
equal ranks shared
plain=("${options[@]/0.9/0}")
mpi 3 "$isonorm" train "${plain[@]}" -q --steps 12 --checkpoint plain --clip 0 >/dev/null 2>told || fail "plain: $(cat told)"
cp plain more
mpi 2 "$isonorm" train "${plain[@]}" -q --steps 16 --extend --checkpoint more --clip 0 >/dev/null 2>told || fail "more: $(cat told)"
for stage in 2 3; do # then on other ranks
  mpi 3 "$isonorm" train "${plain[@]}" -q --steps 12 --checkpoint "zero$stage" --clip 0 --zero $stage >zero.said 2>told || fail "--zero $stage: $(cat told)"
  equal plain "zero$stage"
  mpi 2 "$isonorm" train "${plain[@]}" -q --steps 16 --extend --checkpoint "zero$stage" --clip 0 --zero $stage >/dev/null 2>told || fail "more of --zero $stage: $(cat told)"
  equal more "zero$stage"
  "$isonorm" train "${plain[@]}" -q --steps 18 --extend --checkpoint "zero$stage" --clip 0 --zero $stage >/dev/null 2>told || fail "one process with --zero $stage: $(cat told)"
done
equal zero2 zero3
equal parts.ema ranks.ema
(($(wc -l <ranks.said) == 1)) || fail "what 3 ranks print: $(cat ranks.said)"
[[ $(sed 's/loss [^,]*,//; s/perplexity [^,]*,//' parts.said) == "$(sed 's/loss [^,]*,//; s/perplexity [^,]*,//' ranks.said)" ]] ||
  fail "$(cat parts.said ranks.said)"
(($(grep -c '"event":"step"\|"step":' log) >= 12)) && (($(grep -c '"manifest"' log) == 1)) || fail "the log: $(head -c 2000 log)"

# --rank-invariant has the same bits on any number of ranks.
train -q --steps 12 --accumulate 6 --checkpoint six >/dev/null || fail 'six'
for n in 2 3; do
  mpi $n "$isonorm" train "${options[@]}" -q --steps 12 --accumulate 6 --rank-invariant --checkpoint "six$n" >/dev/null 2>told ||
    fail "$n ranks with --rank-invariant: $(cat told)"
  equal six "six$n"
done

# On more and on fewer of them it goes on, as the training that was never stopped, to rounding.
train -q --steps 36 --checkpoint whole >/dev/null || fail 'whole'
mpi 3 "$isonorm" train "${options[@]}" -q --steps 36 --checkpoint moved --save-every 5 --log moved.log >/dev/null 2>&1 &
while kill -0 $! 2>/dev/null && ! [[ -e moved.log && $(wc -l <moved.log) -ge 9 ]]; do sleep 0.01; done
pkill -KILL -f "checkpoint moved" # all of them, at once, in the middle
wait
mpi 4 "$isonorm" train "${options[@]}" -q --steps 36 --checkpoint moved --zero 1 >/dev/null 2>told || fail "on 4: $(cat told)"
"$isonorm" compare whole moved >/dev/null || fail "whole and moved: $("$isonorm" compare whole moved | tail -3)"

# What goes wrong on all is told once, and what one rank alone does is refused.
mpi 3 "$isonorm" train "${options[@]}" --steps 12 --checkpoint ranks --lr 5 >/dev/null 2>told && fail 'another rate'
(($(grep -c '^isonorm train: ' told) == 1)) || fail "told: $(cat told)"
mpi 1 "$isonorm" train "${options[@]}" -q --steps 4 : -np 1 "$isonorm" train "${options[@]}" -q --steps 4 --lr 0.5 >/dev/null 2>told &&
  fail 'a rank of another rate'
grep -q "^isonorm train: rank 1 on $host has another checkpoint, data or option than rank 0 on $host: lr 0.5, on rank 0 lr 0.001" told || fail "told: $(cat told)"
if grep -qw avx2 /proc/cpuinfo && [[ -z ${ISONORM_ISA-} ]]; then
  mpi 1 "$isonorm" train "${options[@]}" -q --steps 4 : -np 1 env ISONORM_ISA=base "$isonorm" train "${options[@]}" -q --steps 4 >told 2>&1 &&
    fail 'a rank of another instruction set'
  grep -q "rank 1 on $host has another instruction set" told || fail "told: $(cat told)"
fi
# A rank that was asked for something else, or that refuses its command line, does not leave the other waiting.
while read -r -a other; do
  ISONORM_TIMEOUT=60 timeout 60 mpirun.openmpi --oversubscribe --bind-to none -np 1 "$isonorm" train "${options[@]}" -q --steps 4 : \
    -np 1 "$isonorm" "${other[@]}" >said 2>told </dev/null
  code=$?
  ((code != 0 && code != 124)) || fail "a rank of ${other[*]}: exit $code, $(cat said told)"
  (($(grep -c '^isonorm' told) == 1)) || fail "a rank of ${other[*]}: $(cat told)"
done <<'END'
--version
train --help
prove -q
train --nonsense
END
for asked in --version 'train --help'; do
  mpi 2 "$isonorm" $asked >said 2>told || fail "2 ranks of $asked: $(cat told)"
  "$isonorm" $asked | cmp - said || fail "2 ranks of $asked say: $(cat said)"
done
mpi 2 "$isonorm" prove -q >/dev/null 2>told && fail 'prove'
grep -q "^isonorm prove: rank 0 on $host: MPI has started several processes, which only isonorm train supports" told || fail "told: $(cat told)"
mpi 2 "$isonorm" train "${options[@]/#text/-}" -q --steps 1 <text >/dev/null 2>told && fail 'standard input'
grep -q "^isonorm train: rank 0 on $host: --data: /dev/stdin reaches only one of the processes of mpirun" told || fail "told: $(cat told)"
[[ -z $(find . -name '*.lock' -size +0 -newer told) ]] || fail 'a lock is left'

# A file that one machine lacks: the line names rank and machine, and the other rank does not wait until its time limit.
lacks() { # lacks CODE LINE OPTION...: rank 1 runs with these options
  mpi 1 "$isonorm" train "${options[@]}" -q --steps 16 --extend --checkpoint ranks : -np 1 "$isonorm" train "${@:3}" >/dev/null 2>told
  local code=$?
  [[ $code == "$1" ]] || fail "exit $code, expected $1: $(cat told)"
  (($(grep -c '^isonorm' told) == 1)) && grep -q "^isonorm train: $2" told || fail "no '$2': $(cat told)"
}
lacks 4 "rank 1 on $host: nothing: " "${options[@]/#text/nothing}" -q --steps 16 --extend --checkpoint ranks
lacks 3 "rank 1 on $host has another checkpoint than rank 0 on $host: there is no elsewhere, on rank 0 ranks after step 12" \
  "${options[@]}" -q --steps 16 --extend --checkpoint elsewhere

# Ranks wait for a save as long as it takes: rank 0 is stopped in the middle of one. Then SIGUSR1 to one rank makes all save and end.
saves() { compgen -G 'slow.tmp.*' >/dev/null; }
ISONORM_TIMEOUT=6 mpirun.openmpi --oversubscribe --bind-to none -np 2 "$isonorm" train --data text --model gpt --width 128 --depth 2 --heads 2 --context 16 \
  --dtype f64 -q --steps 1000000 --save-every 1 --checkpoint slow >/dev/null 2>told &
launcher=$! first=
for ((i = 0; i < 60000; ++i)); do
  if [[ -e slow ]] && saves; then
    first=$(pgrep -P $launcher | head -n 1)
    kill -STOP "$first"
    saves && break
    kill -CONT "$first"
  fi
  sleep 0.01
done
saves || fail "rank 0 is not stopped in a save: $(cat told)"
sleep 8
kill -CONT "$first"
sleep 1
kill -USR1 "$first" || fail "a slow save: $(cat told)"
wait $launcher
code=$?
[[ $code == 130 ]] || fail "SIGUSR1 after a slow save: exit $code, $(cat told)"
grep -q '^isonorm train: interrupted after step [0-9]* of 1000000; the same command continues from slow' told || fail "told: $(cat told)"
