"""`scripts/gpu truth`: are the device's results right?"""

import json
import math
import random
import tempfile
from contextlib import ExitStack
from pathlib import Path

import sections
from run import last_line, tool
from test_programs import NO_LIBRARIES, first_failure, tests

WORDS = "the stream carries what writers write and readers read of every row in turn".split()
TOOLKIT = [Path("/usr/local/cuda/bin"), Path("/usr/local/cuda/compute-sanitizer")]
STEPS = {"f64": 20, "f32": 5}  # steps of the trainings whose losses are compared with the emulation's
# A loss is a mean over some hundred terms of size 5, which device and emulation add in different orders. In 20 steps
# of AdamW a rounding difference grows at most by this factor of eps. (A proof's controls, changed by one ulp, stay
# below it, too.)
GROWTH = {"f64": 1e5, "f32": 1e3}
EPS = {"f64": 2.0 ** -52, "f32": 2.0 ** -23, "bf16": 2.0 ** -8}


def corpus(folder, words):
    """A text, the same each time."""
    path = folder / "corpus.txt"
    draw = random.Random(1)
    path.write_text(" ".join(draw.choice(WORDS) for _ in range(words)) + "\n")
    return path


def heads(self):
    """A model with heads of 64, which have kernels of their own; under emulation it would take minutes."""
    return "gpt_smoke" if self.options.tiny else "gpt_heads"


def losses(self, steps, *arguments, environment=None):
    with self.ours("step", *arguments, environment=environment) as side:
        return side.go(steps, "train")["losses"]


def same_losses(self, steps, *arguments, environment=None):
    """Whether captured steps are the eager ones, bit for bit."""
    eager, captured = (losses(self, steps, *arguments, *more, environment=environment) for more in ([], ["--captured"]))
    if eager != captured or len(eager) != steps or not all(map(math.isfinite, eager)):
        return self.failed(f"captured steps, {' '.join(arguments)}", f"losses are {captured}, of eager steps {eager}")
    self.say(f"  {steps} losses of captured steps have the bits of eager ones")


def captured(self):
    cases = [(heads(self), "--precision", "bf16"), ("vit_smoke", "--dtype", "f32"), ("gpt_smoke", "--dtype", "f64")]
    for arguments in cases[:1] if self.options.tiny else cases:
        for label, environment in [("", {}), (", without libraries", NO_LIBRARIES)][:1 if self.emulated() else 2]:
            with self.part(f"captured steps of {' '.join(arguments)}{label}", 10) as go:
                if go:
                    same_losses(self, 2 if self.options.tiny else 8, *arguments, environment=environment)


def proofs(self, text):
    sizes = ["--model", "gpt", "--data", text, "--width", "8", "--depth", "1", "--heads", "2", "--context", "8", "--batch", "2",
             "--controls", "2", "--forms", "rms_norm"]
    if not self.options.tiny:
        sizes = ["--model", "gpt", "--data", text, "--width", "64", "--depth", "2", "--heads", "4", "--context", "64", "--batch", "8"]
    steps = {"f64": "5" if self.options.tiny else "200", "f32": "5" if self.options.tiny else "50"}
    isonorm = self.program("tools", "isonorm")
    asked = [(f"proof in {dtype}: forms are one model", [isonorm, "prove", *sizes, "--dtype", dtype, "--steps", steps[dtype], "--quiet"])
             for dtype in ("f64", "f32")]
    asked.append(("proof: the device's training is the CPU's",
                  [isonorm, "prove", *sizes, "--steps", steps["f64"], "--against", "cpu", "--quiet"]))
    asked.append(("gradients at points in f64, f32 and bf16",
                  [isonorm, "prove", "--certificate", "--architectures", "gpt8" if self.options.tiny else "gpt2,vit1",
                   "--steps", "20", "--controls", "2", "--quiet"]))
    for what, command in asked:
        if self.options.tiny and "points" in what:
            continue  # takes minutes under emulation
        with self.part(what, 15) as go:
            if go:
                code, output = self.run(what, [*command, "--device", self.options.device], 180)
                if code == 0:
                    self.say(f"  {last_line(output)[:200]}")
                else:
                    self.failed(what, f"exit code {code}: {last_line(output)[:300]}")


def twice(self, text, folder):
    """Two trainings give the same bits: every loss, and the saved weights."""
    with self.part("bits of two trainings", 10) as go:
        if not go:
            return
        found = []
        for turn in ("first", "second"):
            log, weights = folder / f"{turn}.log", folder / f"{turn}.ckpt"
            weights.unlink(missing_ok=True)
            command = [self.program("tools", "isonorm"), "train", "--model", "gpt", "--data", text, "--width", "16", "--depth", "1",
                       "--heads", "2", "--context", "16", "--batch", "4", "--steps", "5" if self.options.tiny else "50",
                       "--dtype", "f32", "--log", log, "--checkpoint", weights, "--quiet", "--device", self.options.device]
            code, output = self.run(f"{turn} training", command, 120)
            if code != 0:
                return self.failed(f"{turn} training", last_line(output))
            steps = [json.loads(line) for line in log.read_text().splitlines()]
            found.append(([step["loss"] for step in steps if "loss" in step], weights.read_bytes()))
        if found[0] != found[1]:
            return self.failed("bits of two trainings", "they differ: " + ("losses" if found[0][0] != found[1][0] else "weights"))
        self.say(f"  {len(found[0][0])} losses and {len(found[0][1])} bytes of weights are the same")


def deviation(found, expected, steps):
    """The largest relative difference of two lists of `steps` losses; infinite if a loss is missing or not a number."""
    if len(found) != steps or len(expected) != steps or not all(map(math.isfinite, [*found, *expected])):
        return math.inf
    return max(abs(a - b) / abs(b) for a, b in zip(found, expected))


def emulation(self):
    """The same step by the kernels under emulation and on the device: losses of a few steps."""
    for case in ("gpt_smoke", "vit_smoke"):
        for dtype, steps in STEPS.items():
            with self.part(f"{case}, {dtype}: emulated against real", 10) as go, ExitStack() as stack:
                if not go:
                    continue
                sides = [stack.enter_context(self.ours(name, case, "--dtype", dtype)) for name in ("step", "step_emulated")]
                real, made = (side.go(steps, "train")["losses"] for side in sides)
                limit = GROWTH[dtype] * EPS[dtype]
                worst = deviation(real, made, steps)
                if not worst <= limit:
                    self.failed(f"{case}, {dtype}", f"losses differ by {worst:.1e}, expected at most {limit:.1e}")
                if math.isfinite(worst):
                    row = sections.plain_row(f"{case}, {dtype}", {"deviation": worst / EPS[dtype]}, ratios=False, detail=f"{steps} steps")
                    self.add(sections.group(
                        "Emulated against real", "largest relative difference of the losses, in eps", [row], ["deviation"],
                        note="The kernels under emulation and on the device, from the same weights on the same batch."))


def sanitize(self, precision, kinds):
    """Our own kernels alone: libraries ask CUDA for things that are refused, which the tools report."""
    program = tool("compute-sanitizer", *TOOLKIT)
    if self.emulated() or not program:
        return self.leave_out("compute-sanitizer:", "the device is emulated" if self.emulated() else "it is not installed")
    for kind in kinds:
        what = f"compute-sanitizer, {kind}, {' '.join(precision)[2:]}"
        with self.part(what, 20) as go:
            if not go:
                continue
            command = [program, "--tool", kind, "--error-exitcode", "9", self.program("benchmarks", "step"), heads(self),
                       "--device", self.options.device, *precision, "--steps", "1"]
            code, output = self.run(what, command, 90, NO_LIBRARIES)
            if code == 0:
                self.say(f"  {next((line for line in output.splitlines() if 'SUMMARY' in line), 'nothing found')}")
            else:
                self.failed(what, first_failure(code, output))


def memcheck(self):
    sanitize(self, ["--precision", "bf16"], ["memcheck"])


def sanitizers(self):
    sanitize(self, ["--precision", "bf16"], ["racecheck", "synccheck", "initcheck"])
    sanitize(self, ["--dtype", "f32"], ["memcheck", "racecheck", "synccheck", "initcheck"])


def trainings(part):
    """A part that needs a text, and a folder for its trained models."""
    def with_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            part(self, corpus(Path(folder), 100 if self.options.tiny else 2000), Path(folder))
    return with_folder


PARTS = {"tests": tests, "bits": trainings(twice), "captured": captured, "memcheck": memcheck, "emulation": emulation,
         "sanitizers": sanitizers, "proofs": trainings(lambda self, text, _: proofs(self, text))}


def leg(self):
    self.need_device()
    self.run_parts(PARTS)
