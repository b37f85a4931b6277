"""`scripts/gpu truth`: is what the device computes right?"""

import json
import math
import random
import re
from contextlib import ExitStack
from pathlib import Path

import sections
from run import last_line, tool

WORDS = "the stream carries what writers write and readers read of every row in turn".split()
TOOLKIT = [Path("/usr/local/cuda/bin"), Path("/usr/local/cuda/compute-sanitizer")]
STEPS = {"f64": 20, "f32": 5}  # of the trainings whose losses are held against the emulation's
# A loss is a mean of some hundred terms of size 5, over which the two sum in different orders; in 20 steps of AdamW a
# difference of rounding grows at most by this factor of eps (a proof's controls, moved by one ulp, stay below it too).
GROWTH = {"f64": 1e5, "f32": 1e3}
EPS = {"f64": 2.0 ** -52, "f32": 2.0 ** -23}


def corpus(folder, words):
    """A text, the same each time."""
    path = folder / "corpus.txt"
    draw = random.Random(1)
    path.write_text(" ".join(draw.choice(WORDS) for _ in range(words)) + "\n")
    return path


def programs(self):
    """The test programs of this build: of the device, or of the emulation where the library is that."""
    cuda = [("ops", "test_ops_cuda"), ("optimizers", "test_optim_cuda"), ("models", "test_device_cuda"), ("CUDA", "test_gpu_cuda")]
    emulated = [("ops", "test_ops_gpu"), ("optimizers", "test_optim_gpu"), ("models", "test_device")]
    return emulated if "emulated" in self.device_name else cuda


def tests(self):
    for what, program in programs(self):
        path = self.options.build / "tests" / program
        if not path.exists():
            self.failed(f"tests of {what}", f"{program} is not built")
            continue
        with self.part(f"tests of {what}", 10) as go:
            if not go:
                continue
            chosen = ["~[two devices]"] if what == "models" else []
            if self.options.tiny:
                chosen = {"ops": ["bad calls*"], "optimizers": ["*norm*"], "models": ["files are one*"]}[what]
            code, output = self.run(program, [path, *chosen], 240)
            passed = re.search(r"All tests passed \(([^)]*)\)", output)
            if code == 0:
                self.say(f"  {program}: {passed.group(1) if passed else last_line(output)}")
            else:
                self.failed(program, "the time was over" if code == 124 else f"exit code {code}: {first_failure(output)}")


def first_failure(output):
    lines = output.splitlines()
    return next((line.strip() for line in lines if "FAILED" in line or "error" in line.lower()), last_line(output))


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
            continue  # minutes under emulation
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
            losses = [json.loads(line)["loss"] for line in log.read_text().splitlines() if "loss" in json.loads(line)]
            found.append((losses, weights.read_bytes()))
        if found[0] != found[1]:
            return self.failed("bits of two trainings", "they differ: " + ("losses" if found[0][0] != found[1][0] else "weights"))
        self.say(f"  {len(found[0][0])} losses and {len(found[0][1])} bytes of weights are the same")


def deviation(found, expected, steps):
    """The largest relative difference of two lists of `steps` losses; infinite where one is missing or not a number."""
    if len(found) != steps or len(expected) != steps or not all(map(math.isfinite, [*found, *expected])):
        return math.inf
    return max(abs(a - b) / abs(b) for a, b in zip(found, expected))


def emulation(self):
    """The same step by the kernels under emulation and on the device: losses of a few steps."""
    program = self.options.build / "benchmarks" / "step_emulated"
    if not program.exists():
        return self.failed("emulated against real results", "step_emulated is not built")
    rows = []
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
                    rows.append(sections.plain_row(f"{case}, {dtype}", {"deviation": worst / EPS[dtype]}, ratios=False,
                                                   detail=f"{steps} steps", aim=None))
    if rows:
        self.add(sections.group("Emulated against real", "largest relative difference of the losses, in eps", rows, ["deviation"],
                                note="The kernels under emulation and on the device, from the same weights on the same batch."))


def sanitizers(self):
    program = tool("compute-sanitizer", *TOOLKIT)
    if "emulated" in self.device_name or not program:
        return self.left_out.append("compute-sanitizer: " + ("the device is emulated" if program else "it is not installed"))
    for kind in ("memcheck", "racecheck", "synccheck", "initcheck"):
        for dtype in ("f32", "bf16"):
            with self.part(f"compute-sanitizer, {kind}, {dtype}", 20) as go:
                if not go:
                    continue
                command = [program, "--tool", kind, "--error-exitcode", "9", self.program("benchmarks", "step"), "gpt_smoke",
                           "--device", self.options.device, "--dtype", dtype, "--steps", "1"]
                code, output = self.run(f"{kind} {dtype}", command, 60)
                if code == 0:
                    self.say(f"  {next((line for line in output.splitlines() if 'SUMMARY' in line), 'nothing found')}")
                else:
                    self.failed(f"{kind}, {dtype}", first_failure(output) if code != 124 else "the time was over")


def leg(self):
    self.need_device()
    folder = self.results.json.parent
    text = corpus(folder, 100 if self.options.tiny else 2000)
    self.run_parts({"bits": lambda _: twice(self, text, folder), "proofs": lambda _: proofs(self, text), "emulation": emulation,
                    "sanitizers": sanitizers, "tests": tests})
