#!/usr/bin/env python3
"""Tests of scripts/gpu and of what it runs.   usage: gpu_test.py BUILD-TREE FORM   (FORM: off, cuda or emulated)"""

import contextlib
import io
import json
import math
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "gpu"), str(ROOT / "benchmarks")]

import results  # noqa: E402
import run  # noqa: E402
import sections  # noqa: E402
import steps  # noqa: E402
import truth  # noqa: E402
from sides import Failure, Side  # noqa: E402

BUILD, FORM = Path(sys.argv[1]), sys.argv[2]


def roofline(*arguments):
    command = [BUILD / "benchmarks" / "gpu_roofline", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800).stdout)


def script(*arguments):
    return subprocess.run([ROOT / "scripts" / "gpu", *arguments], capture_output=True, text=True)


def options(folder, **more):
    return types.SimpleNamespace(**dict(tiny=True, libraries={}, out=Path(folder), build=Path(folder), device="cuda:0", python=None, only=[], scale=1) | more)


class Roofline(unittest.TestCase):
    def test_what_is_counted_without_doing_it_is_what_is_done(self):
        for case, dtype in (("gpt_smoke", "bf16"), ("vit_smoke", "f32")):
            for form in ("layer_norm", "crms_isometric"):
                counted = roofline(case, "--dtype", dtype, "--form", form)[form]
                done = roofline(case, "--dtype", dtype, "--form", form, "--executed")[form]
                self.assertEqual(counted, done)
                self.assertGreater(counted["all"]["launches"], 50)

    def test_launches_belong_to_slots(self):
        slots = roofline("gpt_smoke", "--form", "layer_norm")["layer_norm"]["slots"]
        self.assertNotIn("(outside of slots)", slots)
        self.assertEqual(slots["attention_forward"]["launches"], 1)  # of one block
        self.assertEqual(slots["norm_forward"]["launches"], 3)  # two of the block, the last one
        self.assertEqual(slots["transfer"]["launches"], 0)

    def test_a_large_step_is_counted_at_once(self):
        counted = roofline("gpt2", "--form", "layer_norm")["layer_norm"]["all"]  # hours if it were executed
        self.assertAlmostEqual(counted["flops"] / 26.46e12, 1, delta=0.01)  # 807.5 MFLOP a token
        self.assertLess(counted["bytes"], 1.05 * 72.6e9)  # a list made by hand has 72.6 GB, docs/gpu.md
        self.assertGreater(counted["bytes"], 0.9 * 72.6e9)

    def test_operations_are_those_of_the_model(self):
        batch, length, width, vocab, heads = 2, 8, 16, 32, 2
        rows, scores = batch * length, batch * heads * length * length // 2
        products = 6 * rows * (12 * width ** 2 + vocab * width)
        attention = 2 * scores * 7 * (width // heads)  # two products forward; five backward, where scores are made again
        counted = roofline("gpt_smoke", "--form", "layer_norm")["layer_norm"]
        self.assertEqual(counted["all"]["flops"], products + attention)
        self.assertEqual(counted["allocations"], 0)

    def test_the_floor_is_the_larger_of_two_times(self):
        slots = roofline("gpt_smoke", "--form", "layer_norm")["layer_norm"]["slots"]
        update = slots["update"]
        self.assertEqual(update["flops"], 0)
        self.assertAlmostEqual(update["floor_ms"]["H100"], 1e3 * update["bytes"] / 3.0e12)
        self.assertAlmostEqual(update["floor_ms"]["H200"], 1e3 * update["bytes"] / 4.3e12)


class Script(unittest.TestCase):
    def test_a_folder_that_cannot_be_made_is_one_line(self):
        done = script("truth", "--out", "/proc/none")
        self.assertEqual((done.returncode, done.stderr), (run.FAILED, "scripts/gpu: /proc/none: No such file or directory\n"))

    def test_usage(self):
        self.assertEqual(script("nonsense").returncode, 2)
        self.assertEqual(script().returncode, 2)

    def test_without_programs_it_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            for leg in ("truth", "speed", "profile", "paper"):
                done = script(leg, "--build", folder, "--out", folder)
                self.assertEqual(done.returncode, run.NOT_BUILT)
                self.assertRegex(done.stderr, rf"^scripts/gpu {leg}: .*/step is not built: [^\n]*\n$")

    @unittest.skipUnless(FORM == "off", "the library has devices")
    def test_without_a_device_each_leg_says_so_in_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            for leg in ("truth", "speed", "profile", "paper"):
                done = script(leg, "--build", BUILD, "--out", folder)
                self.assertEqual(done.returncode, run.NO_DEVICE)
                self.assertEqual(done.stderr, f"scripts/gpu {leg}: step: --device cuda:0: this library was built without it\n")

    @unittest.skipUnless(FORM == "emulated", "no device to try it on")
    def test_every_leg_runs_on_the_emulated_device(self):
        with tempfile.TemporaryDirectory() as folder:
            for leg, groups in (("probe", 1), ("truth", 1), ("speed", 6), ("profile", 2), ("paper", 4)):
                done = script(leg, "--tiny", "--build", BUILD, "--out", folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                found = json.loads((Path(folder) / "gpu.json").read_text())["legs"][leg]
                self.assertEqual(found["failures"], [])
                self.assertGreaterEqual(len(found["groups"]), groups)
            page = (Path(folder) / "gpu.html").read_text()
            for title in ("Emulated against real", "Residual + norm, backward", "Time of a step by kernel", "Table 3"):
                self.assertIn(title, page)
            self.assertIn("the device was emulated on the CPU", page)


    @unittest.skipUnless(FORM == "emulated", "no device to try it on")
    def test_a_lease_that_is_killed_goes_on_in_its_second_call(self):
        with tempfile.TemporaryDirectory() as folder:
            asked = [ROOT / "scripts" / "gpu", "lease", "--tiny", "--minutes", "60", "--build", BUILD, "--out", folder]
            with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as call:
                before = ""
                for line in call.stdout:
                    before += line
                    if "captured steps of gpt" in line:
                        break
                call.kill()
            found = json.loads((Path(folder) / "gpu.json").read_text())["legs"]
            self.assertTrue(found["truth"]["parts"]["tests of ops"]["done"], before)
            done = subprocess.run(asked, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, "lease: 0 failed; all done\n$")
            self.assertNotIn("tests of ops", done.stdout)
            legs = json.loads((Path(folder) / "gpu.json").read_text())["legs"]
            self.assertEqual(list(legs), ["probe", "truth", "speed", "profile", "paper"])
            for part, state in found["truth"]["parts"].items():
                self.assertTrue(legs["truth"]["parts"][part]["done"] or not state["done"])


class Build(unittest.TestCase):
    def test_all_that_is_missing_is_said_at_once(self):
        absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("ZLIB", "nlohmann_json", "CLI11")]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DISONORM_GPU=off", *absent], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("not found, install the Debian packages: zlib1g-dev nlohmann-json3-dev libcli11-dev", " ".join(done.stderr.split()))


class Truth(unittest.TestCase):
    def test_losses_that_are_missing_or_no_numbers_are_no_agreement(self):
        self.assertEqual(truth.deviation([2.0, 4.0], [2.0, 5.0], 2), 0.2)
        for found, expected in (([2.0], [2.0, 4.0]), ([2.0], [2.0]), ([], []), ([2.0, math.nan], [2.0, 4.0]), ([2.0, 4.0], [2.0, math.nan]),
                                ([2.0, math.inf], [2.0, math.inf])):
            self.assertEqual(truth.deviation(found, expected, 2), math.inf)


class Parts(unittest.TestCase):
    def leg(self, folder, name="speed", **more):
        minutes = more.pop("minutes", 1.0)
        return run.Leg(name, options(folder, **more), results.Results(Path(folder)), minutes)

    def quietly(self, function, *arguments):
        with contextlib.redirect_stdout(io.StringIO()):
            return function(*arguments)

    def test_legs_are_merged_and_what_was_found_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, value in (("truth", 1.0), ("speed", 2.0)):
                leg = self.leg(folder, name)
                self.quietly(leg.add, sections.group(f"of {name}", "ms", [sections.plain_row("a", {"ours": value})], ["ours"]))
            found = json.loads((Path(folder) / "gpu.json").read_text())  # though no leg came to its end
            self.assertEqual(list(found["legs"]), ["truth", "speed"])
            page = (Path(folder) / "gpu.html").read_text()
            self.assertIn("of truth", page)
            self.assertIn("of speed", page)

    def test_parts_of_a_leg_are_chosen_and_the_others_kept(self):
        def part(title):
            return lambda leg: leg.add(sections.group(title, "ms", [sections.plain_row("a", {"ours": 1.0})], ["ours"]))
        parts = {"one": part("first"), "two": part("second")}
        with tempfile.TemporaryDirectory() as folder:
            titles = lambda: [g["title"] for g in json.loads((Path(folder) / "gpu.json").read_text())["legs"]["speed"]["groups"]]
            self.quietly(self.leg(folder, only=["two"]).run_parts, parts)
            self.assertEqual(titles(), ["second"])
            self.quietly(self.leg(folder, only=["one"]).run_parts, parts)
            self.assertEqual(sorted(titles()), ["first", "second"])
            self.quietly(self.leg(folder).run_parts, {"one": part("alone")})
            self.assertEqual(titles(), ["alone"])
            with self.assertRaisesRegex(Failure, "--only three: its parts are one, two"):
                self.leg(folder, only=["three"]).run_parts(parts)

    def test_rows_join_those_of_their_group(self):
        with tempfile.TemporaryDirectory() as folder:
            leg = self.leg(folder)
            for name, series in (("a", "ours"), ("b", "eager"), ("a", "eager")):
                row = sections.plain_row(name, {series: 1.0}, ratios=False)
                self.quietly(leg.add, sections.group("title", "ms", [row], [series]))
            found, = json.loads((Path(folder) / "gpu.json").read_text())["legs"]["speed"]["groups"]
            self.assertEqual([(row["name"], list(row["values"])) for row in found["rows"]], [("b", ["eager"]), ("a", ["eager"])])
            self.assertEqual(found["series"], ["ours", "eager"])

    def test_what_has_no_time_left_is_left_out_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            leg = self.leg(folder, minutes=0.5)
            self.assertTrue(self.quietly(leg.enough, "short", 10))
            self.assertFalse(self.quietly(leg.enough, "long", 100))
            self.assertRegex(leg.left_out["long"], r"^long was left out: \d+ s were left, it takes up to 100 s$")
            with contextlib.redirect_stdout(io.StringIO()), leg.part("longer", 200) as go:
                self.assertFalse(go)

    def test_a_part_that_fails_ends_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            leg = self.leg(folder)
            for error in (Failure("it broke"), KeyError("gelu")):
                with contextlib.redirect_stdout(io.StringIO()), leg.part(f"a part with a {type(error).__name__}", 1):
                    raise error
            self.assertEqual(leg.failures, ["a part with a Failure: it broke", "a part with a KeyError: KeyError: 'gelu'"])

    def test_programs_that_hang_are_ended(self):
        begin = time.monotonic()
        with self.assertRaises(Failure):
            Side("silent", ["sleep", "60"], 1, limit=0.5)
        with tempfile.TemporaryDirectory() as folder:
            leg = self.leg(folder)
            self.assertEqual(leg.run("sleep", ["sleep", "60"], 0.5)[0], 124)
            self.assertEqual(leg.run("nothing", ["/no/such/program"], 1)[0], 127)
        self.assertLess(time.monotonic() - begin, 30)

    def test_operations_of_a_step(self):
        self.assertAlmostEqual(steps.flops("vit_base", 1) / 1e9, 105.4, delta=0.5)  # six a weight and row, and attention
        self.assertAlmostEqual(steps.flops("gpt2", 1) / 1024 / 1e6, 803, delta=10)  # as llm.c counts a token


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
