"""`scripts/gpu probe`: versions, and whether a step, the libraries and a captured step work at all."""

import subprocess

import sections
from run import last_line
from test_programs import NO_LIBRARIES
from truth import EPS, deviation, heads, losses, same_losses

STEPS = 4
# Tolerance for losses from other kernels, in eps of bf16: each kernel rounds its products differently, and a step of
# Adam depends on signs.
LIMIT = 4 * STEPS ** 0.5


def versions(self):
    for name, value in self.results.all["environment"].items():
        self.say(f"  {name}: {value}")
    if self.options.python:
        done = subprocess.run([self.options.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True,
                              timeout=max(1, self.left()))
        if done.returncode != 0:
            return self.failed("PyTorch", last_line(done.stderr))
        self.results.all["environment"]["PyTorch"] = done.stdout.strip()
        self.say(f"  PyTorch: {done.stdout.strip()}")


def both_ways(self):
    """The smallest step and one with heads of 64, by the libraries' kernels and by ours, with a wait after each launch."""
    wait = {"ISONORM_GPU_SYNC": "1"}
    for case in dict.fromkeys(["gpt_smoke", heads(self)]):
        with self.part(f"{case}: by the libraries and by our kernels", 10) as go:
            if not go:
                continue
            arguments = [case, "--precision", "bf16"]
            theirs = losses(self, STEPS, *arguments, environment=wait)
            ours = losses(self, STEPS, *arguments, environment=wait | NO_LIBRARIES)
            worst = deviation(theirs, ours, STEPS) / EPS["bf16"]
            if not worst <= LIMIT:
                self.failed(case, f"losses with and without libraries differ by {worst:.1f} eps of bf16, expected at most {LIMIT:.1f}: "
                                  f"{theirs} and {ours}")
            else:
                self.add(sections.group("Libraries against our kernels", "largest relative difference of the losses, in eps of bf16",
                                        [sections.plain_row(case, {"deviation": worst}, ratios=False, detail=f"{STEPS} steps")],
                                        ["deviation"]))


def leg(self):
    self.need_device()
    with self.part("versions", 10) as go:
        if go:
            versions(self)
    both_ways(self)
    with self.part("one captured training", 10) as go:
        if go:
            same_losses(self, STEPS, heads(self), "--precision", "bf16")
