#!/usr/bin/env bash
# A practitioner's afternoon with a language model from the hub.   usage: examples/21_afternoon.sh PROGRAM [FOLDER]
# PROGRAM is build/release/tools/isonorm. FOLDER has config.json and weights of a GPT-2 or OPT with its head; without
# FOLDER, a tiny GPT-2 is made. Prints the result of each step; exits with code 1 at the first wrong result. PYTHON
# (default python3) loads the results if it has torch, transformers and safetensors.
set -euo pipefail

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

(($# == 1 || $# == 2)) || fail "expected PROGRAM and perhaps FOLDER"
program=$(realpath "$1")
[[ -x $program && -f $program ]] || fail "$1 is no program"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# isonorm WORDS...: runs the program and prints its last line, the verdict.
isonorm() {
  printf '$ isonorm %s\n' "$*"
  "$program" "$@" >"$work/said" 2>&1 || fail "exit code $?: $(tail -n 1 "$work/said")"
  tail -n 1 "$work/said"
}

# ends_with CODE WORDS...: the same for a command that must end with this exit code.
ends_with() {
  local code=0 expected=$1
  shift
  printf '$ isonorm %s\n' "$*"
  "$program" "$@" >"$work/said" 2>&1 || code=$?
  ((code == expected)) || fail "exit code $code, expected $expected: $(tail -n 1 "$work/said")"
  tail -n 1 "$work/said"
}

[[ $# == 1 ]] || model=$(realpath "$2")
cd "$work"
if [[ $# == 1 ]]; then
  for _ in {1..40}; do printf 'the stream carries what the writers write and the readers read. '; done >text
  isonorm train --model gpt --data text --form layer_norm --affine --tied --width 16 --depth 2 --heads 2 --context 16 --batch 4 \
    --steps 20 --threads 1 --checkpoint made.ckpt -q
  model=gpt2
  isonorm export made.ckpt "$model"
fi
[[ -f $model/config.json ]] || fail "$model has no config.json"
vocabulary=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' "$model/config.json")
[[ -n $vocabulary ]] || fail "$model/config.json has no vocab_size: this is no language model"

printf '\nThe same model with RMSNorm: in the class that it has (fold none), and with plain norms (fold all).\n'
isonorm convert "$model" kept --to rms_norm --fold none --dtype f64 -q
isonorm convert "$model" rms --to rms_norm --dtype f64 -q
for converted in kept rms; do isonorm verify "$model" "$converted" -q; done

printf '\nIts stream in another basis, as QuaRot and SliceGPT turn it. verify finds the basis where it is asked to.\n'
isonorm rotate rms turned --basis haar:1 -q
ends_with 5 verify rms turned -q
isonorm verify rms turned --up-to rotation -q

printf '\nA few steps of fine-tuning, and back.\n'
ids=
for ((i = 0; i < 400; i++)); do
  printf -v id '\\x%02x\\x00\\x00\\x00' $((i * i % (vocabulary < 128 ? vocabulary : 128)))
  ids+=${id:0:$((vocabulary > 65536 ? 16 : 8))} # little-endian u32 or u16
done
for _ in {1..64}; do printf '%b' "$ids"; done >ids # 25,600 of them: the last tenth, for the test pass, is longer than most contexts
isonorm import "$model" before
isonorm train --init before --data ids --token-vocab "$vocabulary" --batch 1 --steps 3 --warmup 1 --checkpoint tuned.ckpt -q
isonorm export tuned.ckpt tuned --like "$model"
isonorm import tuned again
isonorm verify tuned.ckpt again -q
ends_with 1 verify before again -q

python=${PYTHON:-python3}
printf '\n'
if ! "$python" -c 'import safetensors, torch, transformers' 2>/dev/null; then
  printf 'Not loaded in PyTorch: %s has no torch, transformers and safetensors.\n' "$python"
  exit 0
fi
printf 'In PyTorch, logits in f64 beside those of the original:\n'
"$python" - "$model" kept rms turned tuned 2>errors <<'END' || fail "PyTorch: $(tail -n 1 errors)"
import runpy
import sys

import torch
import transformers

original, *folders = sys.argv[1:]
config = transformers.AutoConfig.from_pretrained(original)
stock, ids = getattr(transformers, config.architectures[0]), torch.arange(8).reshape(1, 8) * 7 % config.vocab_size


def logits(model):
    with torch.no_grad():
        return model.eval()(ids).logits


def loaded(folder):
    if folder in ("rms", "turned"):
        return runpy.run_path(f"{folder}/isonorm_torch.py")["load"](folder)
    model, found = stock.from_pretrained(folder, dtype=torch.float64, output_loading_info=True)
    if missing := [name for names in found.values() for name in names if name != "lm_head.weight"]:
        raise SystemExit(f"{folder}: of the stock class are missing or left over: {missing}")
    return model


expected = logits(loaded(original))
for folder in folders:
    off = float((logits(loaded(folder)) - expected).abs().max() / expected.abs().max())
    print(f"  {folder}: off by {off:.1e}" + (", since it was trained" if folder == "tuned" else ""))
    if (off < 1e-10) == (folder == "tuned"):  # far above f64 rounding, far below a mistake
        raise SystemExit(f"{folder} is off by {off:.1e}")
END
