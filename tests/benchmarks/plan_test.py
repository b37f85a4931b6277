#!/usr/bin/env python3
"""Test of the plan of `scripts/gpu lease`: its own scheduler on a false clock, with programs that take stated times and do nothing."""

import contextlib
import io
import json
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "gpu"), str(ROOT / "benchmarks")]

import lease  # noqa: E402
import main  # noqa: E402
import results  # noqa: E402
import run  # noqa: E402
import test_programs  # noqa: E402
import truth  # noqa: E402

# Seconds. START: a server until it answers; COMPILE: torch.compile, in addition; TEST: a test program; PROGRAM: any
# other program.
START, COMPILE, TEST, PROGRAM = 6, 60, 8, 10
FIRST, SECOND = lease.CALLS


class Machine:
    """Plays the programs and the clock. slow: each takes all the time that it may, once it is known that there is a device."""

    def __init__(self, slow=False):
        self.now, self.slow, self.done = 0.0, slow, {}  # done: part -> (call, second of the call)

    def take(self, seconds, limit):
        self.now += max(0, limit if self.slow else min(seconds, limit))
        if self.slow or seconds > limit:
            raise run.Failure("the time was over")

    def side(self, leg, name, *arguments, **_):
        self.take(START + (COMPILE if "--compile" in arguments else 0), leg.left())

        def go(times, work):
            self.take(0.2 * times, leg.left())
            values = [1.0] * times
            return dict(ms=values, forward_ms=values, backward_ms=values, losses=values, kernels={"matmul": 1.0})
        return contextlib.nullcontext(types.SimpleNamespace(facts=dict(gelu="tanh", parameters=7), go=go))

    def program(self, leg, what, command, limit, environment=None):
        if what == "is there a device?":
            self.now += PROGRAM
        else:
            self.take(TEST if "test_" in str(command[0]) else PROGRAM, min(limit * max(1, leg.options.scale), leg.left()))
        counts = dict(floor_ms={"H200": 1.0}, launches=1)
        return 0, json.dumps(dict(device="NVIDIA H200", layer_norm=dict(slots={"matmul": counts}, all=counts, waits=1)))

    def tests(self, leg):  # one after another; a program stands for the AT_ONCE programs that run at once
        for label in ("", ", without libraries"):
            for what, _, runs in test_programs.programs(leg):
                with leg.part(f"tests of {what}{label}", 10, 300) as go:
                    for _ in range(-(-len(runs) // test_programs.AT_ONCE) if go else 0):
                        self.program(leg, what, ["test_"], 150)

    def bits(self, leg):
        with leg.part("bits of two trainings", 10) as go:
            if go:
                self.program(leg, "first", ["isonorm"], 120), self.program(leg, "second", ["isonorm"], 120)

    def calls(self, folder, count, **more):
        """The results of `count` calls, and how long each one took."""
        options = types.SimpleNamespace(**dict(tiny=False, libraries={}, build=folder, device="cuda:0", only=[], python="python", minutes=None) | more)
        found, took = results.Results(folder), []
        (folder / "trace.json").write_text("[]")
        save = run.Leg.save

        def note(leg):
            for what, state in leg.parts.items():
                if state["done"]:
                    self.done.setdefault(what, (len(took) + 1, self.now - options.begun))
            save(leg)

        with contextlib.ExitStack() as stack:
            for patched in (patch.object(time, "monotonic", lambda: self.now), patch.multiple(
                    run.Leg, run=self_of(self.program), ours=self_of(self.side), torch=self_of(self.side), save=note,
                    program=lambda leg, *parts: "/".join(parts)),
                    patch.object(truth, "tool", lambda *_: "sanitizer"), patch.dict(truth.PARTS, tests=self.tests, bits=self.bits),
                    patch.object(run.subprocess, "run", lambda *_, **__: types.SimpleNamespace(returncode=0, stdout="2.0")),
                    contextlib.redirect_stdout(io.StringIO())):
                stack.enter_context(patched)
            for _ in range(count):
                options.begun = self.now
                lease.lease(options, found, main.run)
                took.append(self.now - options.begun)
        return found.all, took


def self_of(method):
    return lambda leg, *arguments, **more: method(leg, *arguments, **more)


class Plan(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_the_plan_fits_its_calls(self):
        planned = sum(stage.seconds for stage in lease.PLAN)
        self.assertLessEqual(planned, FIRST + SECOND)
        self.assertLessEqual(FIRST + SECOND + 2 * 90, 900)  # 90 s for the start, 90 s for copies in both directions
        first = [stage for stage in lease.PLAN if stage.leg != "speed" or "choices" not in stage.parts][:5]
        self.assertLessEqual(sum(stage.seconds for stage in first), FIRST)
        self.assertEqual(first[-1].leg, "profile")
        asked = [(stage.leg, part) for stage in lease.PLAN for part in stage.parts]
        self.assertEqual(len(asked), len(set(asked)))
        self.assertEqual({part for leg, part in asked if leg == "truth"}, set(truth.PARTS))
        self.assertEqual({part for leg, part in asked if leg == "speed"}, set(main.speed.PARTS))
        self.assertLess(asked.index(("truth", "emulation")), asked.index(("truth", "sanitizers")))

    def test_what_matters_most_comes_first(self):
        machine = Machine()
        found, took = machine.calls(self.folder, 2)
        self.assertLessEqual(took[0], FIRST + 0.1)
        self.assertLessEqual(took[1], SECOND + 0.1)
        order = ["versions", "tests of ops", "bits of two trainings", "captured steps of gpt_heads --precision bf16", "ceilings",
                 "gpt2, mixed, any order", "gpt2, mixed, deterministic", "gpt2, mixed, batch 32", "gpt2: any order, fused sums, eager",
                 "compute-sanitizer, memcheck, precision bf16"]
        self.assertEqual([what for what in order if what not in machine.done], [])
        times = [machine.done[what] for what in order]
        self.assertEqual(times, sorted(times))
        self.assertEqual(machine.done["gpt2, mixed, batch 32"][0], 1)
        beside = {g["title"]: set(g["rows"][0]["ratios"]) for g in found["legs"]["speed"]["groups"]}
        self.assertEqual(beside["Training step, gpt2, mixed, any order"], {"compile", "eager"})
        self.assertIn("compile", beside["Training step, gpt2, mixed, deterministic"])
        self.assertEqual([why for leg in found["legs"].values() for why in leg["failures"]], [])
        self.assertFalse({what for what in machine.done if "racecheck" in what or "proof" in what})

    def test_programs_that_hang_keep_no_other_stage_from_its_time(self):
        machine = Machine(slow=True)
        found, took = machine.calls(self.folder, 2)
        self.assertLessEqual(took[0], FIRST + 1)
        self.assertLessEqual(took[1], SECOND + 1)
        for stage in lease.PLAN[:7]:
            spent = found["legs"][stage.leg]["stages"][stage.name]["seconds"]
            self.assertGreaterEqual(spent, 0.8 * stage.seconds, stage.name)

    def test_minutes_scale_all(self):
        for minutes in (4, 30):
            machine = Machine(slow=True)
            found, took = machine.calls(self.folder / str(minutes), 2, minutes=minutes)
            scale = 60 * minutes / (FIRST + SECOND)
            for seconds, call in zip(took, lease.CALLS):
                self.assertAlmostEqual(seconds, scale * call, delta=2 * run.LEAST)
            for stage in lease.PLAN[:5]:
                spent = found["legs"][stage.leg]["stages"][stage.name]["seconds"]
                self.assertGreaterEqual(spent, 0.9 * scale * stage.seconds - run.LEAST, stage.name)


if __name__ == "__main__":
    unittest.main()
