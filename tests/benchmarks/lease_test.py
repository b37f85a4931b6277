#!/usr/bin/env python3
"""Tests of the legs of scripts/gpu with programs that are played (fake_program.py): order, environment, going on."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "gpu"), str(ROOT / "benchmarks")]

import build  # noqa: E402
import run  # noqa: E402
import test_programs  # noqa: E402

CAPTURED, ANY_ORDER = "--captured", "--any-order"


class Played(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        played = self.folder / "fake_program.py"
        played.write_text(f"#!{sys.executable} -SE\n" + (HERE / "fake_program.py").read_text())  # starts at once
        played.chmod(0o755)
        for path in [*build.programs("cuda").values(), "bin/compute-sanitizer", "bin/python", "bin/nvidia-smi"]:
            program = self.folder / path
            program.parent.mkdir(exist_ok=True)
            program.symlink_to(played)
        self.log = self.folder / "log"

    def begin(self, *arguments, **variables):
        environment = os.environ | {"FAKE_LOG": str(self.log), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"} | variables
        return subprocess.Popen([sys.executable, ROOT / "scripts" / "gpu", *arguments, "--build", self.folder, "--out", self.folder / "out"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def script(self, *arguments, code=0, **variables):
        self.log.write_text("")
        process = self.begin(*arguments, **variables)
        output = process.communicate(timeout=1800)[0]
        self.assertEqual(process.returncode, code, output)
        return output

    def calls(self, name=""):
        return [call for call in map(json.loads, self.log.read_text().splitlines()) if call["name"].startswith(name)]

    def leg(self, name):
        return json.loads((self.folder / "out" / "gpu.json").read_text())["legs"][name]


class Truth(Played):
    def test_tests_come_first_each_group_by_itself_with_and_without_libraries(self):
        self.script("truth")
        names = [call["name"] for call in self.calls()]
        behind = names.index("step", 1)  # the first one asks whether there is a device
        self.assertFalse([name for name in names[behind:] if name.startswith("test_")])
        kinds = [(n, c["arguments"][1]) for n, c in zip(names, self.calls()) if n in ("compute-sanitizer", "isonorm")]
        self.assertEqual(kinds[:4], [("isonorm", "--model")] * 2 + [("compute-sanitizer", "memcheck"), ("compute-sanitizer", "racecheck")])
        self.assertLess(names.index("step_emulated"), kinds and names.index("compute-sanitizer", names.index("compute-sanitizer") + 1))
        for libraries_off in (None, "0"):
            groups = [c["variables"].get("ISONORM_OP_ROWS") for c in self.calls("test_ops_cuda")
                      if c["variables"].get("ISONORM_GPU_LIBRARIES") == libraries_off]
            self.assertEqual(sorted(groups), sorted(test_programs.OP_GROUPS))
        for program in ("test_optim_cuda", "test_device_cuda", "test_distributed_cuda", "test_gpu_cuda"):
            self.assertEqual([c["variables"].get("ISONORM_GPU_LIBRARIES") for c in self.calls(program)], [None, "0"])
        self.assertEqual(len([c for c in self.calls("step") if CAPTURED in c["arguments"]]), 6)

    def test_the_sanitizers_see_our_kernels_for_heads_of_64(self):
        self.script("truth", "--only", "memcheck", "sanitizers")
        calls = self.calls("compute-sanitizer")
        self.assertEqual([c["arguments"][1] for c in calls[:2]], ["memcheck", "racecheck"])
        for call in calls:
            self.assertIn("gpt_heads", call["arguments"])
            self.assertEqual(call["variables"]["ISONORM_GPU_LIBRARIES"], "0")

    def test_a_group_that_fails_is_run_again_case_by_case(self):
        self.script("truth", "--only", "tests", code=run.FAILED, FAKE_FAIL="test_ops_cuda ISONORM_OP_ROWS=matmul")
        self.assertEqual(self.leg("truth")["failures"], [
            f"test_ops_cuda matmul{libraries}: another: exit code 1: a_test.cpp:1: FAILED: it is wrong"
            for libraries in ("", ", without libraries")])
        self.assertEqual(len([c for c in self.calls("test_ops_cuda") if c["variables"]["ISONORM_OP_ROWS"] == "norm"]), 2)

    def test_groups_are_those_of_the_test_program(self):
        rows = (ROOT / "tests" / "op_cases" / "all.cpp").read_text()
        self.assertEqual(re.findall(r'\{"(\w+)", \w+_cases', rows), test_programs.OP_GROUPS)


class Speed(Played):
    def test_choices_and_what_is_asked_of_pytorch(self):
        self.script("speed", "--tiny", "--python", "python")  # that of PATH
        asked = set()
        for call in self.calls("step"):
            if "--serve" in call["arguments"] and "gpt_smoke" in call["arguments"] and "--no-affine" not in call["arguments"]:
                asked.add((ANY_ORDER in call["arguments"], CAPTURED in call["arguments"], call["variables"].get("ISONORM_GPU_BGRADB")))
        self.assertEqual(asked, {(a, c, b) for a in (False, True) for c in (False, True) for b in (None, "0")})
        rows = {group["title"]: group["rows"] for group in self.leg("speed")["groups"]}
        self.assertEqual(len(rows["Choices of a training step"]), 7)
        torch = [call["arguments"] for call in self.calls("python") if "torch_step.py" in call["arguments"][0]]
        self.assertTrue(all(a[a.index("--gelu") + 1] == "tanh" for a in torch))  # as ours says
        deterministic = [a for a in torch if "--deterministic" in a]
        self.assertEqual([("--compile" in a) for a in deterministic], [True, False])
        self.assertIn("Training step, gpt_smoke, mixed, deterministic", rows)

    def test_libraries_of_the_interpreter_are_named_to_our_programs(self):
        nvidia = self.folder / "site-packages" / "nvidia"
        for file in ("cu13/lib/libcublasLt.so.13", "cudnn/lib/libcudnn.so.9", "cu13/lib/libnvrtc.so.13", "nccl/lib/libnccl.so.2",
                     "cufft/lib/libcufft.so.12"):
            (nvidia / file).parent.mkdir(parents=True, exist_ok=True)
            (nvidia / file).touch()
        self.script("probe", "--python", str(self.folder / "bin" / "python"), FAKE_NVIDIA=str(nvidia), LD_LIBRARY_PATH="/before")
        folders = f"{nvidia}/cu13/lib:{nvidia}/cudnn/lib:{nvidia}/nccl/lib"
        found = [call["variables"] for call in self.calls("step")]
        self.assertEqual({v["LD_LIBRARY_PATH"] for v in found}, {folders + ":/before"})
        self.assertEqual({v["ISONORM_GPU_LIBRARIES"] for v in found}, {folders, "0"})
        self.assertEqual(self.leg("probe")["left_out"], ["cuDNN: none, it hides (our own kernels do its work)"])

    def test_an_interpreter_that_is_none_is_one_line(self):
        said = self.script("probe", "--python", "/no/such/python", code=run.FAILED)
        self.assertEqual(said, "scripts/gpu: --python /no/such/python: No such file or directory\n")


class Lease(Played):
    def killed(self, program, argument, hang):
        """A call whose program never ends, killed when that was begun."""
        self.log.write_text("")
        process = self.begin("lease", "--tiny", FAKE_HANG=hang)
        while not any(argument in call["arguments"] for call in self.calls(program)):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def test_a_call_goes_on_where_the_last_one_stopped(self):
        said = self.script("lease", "--tiny", "--minutes", "0.05", code=run.GO_ON)  # too short for any part
        self.assertRegex(said, r"^lease: 0 failed; not done: probe; truth: tests; .*; paper; the next call continues\n$")
        self.assertEqual(self.calls(), [])
        captured = "one captured training"
        for _ in range(run.TRIES):
            self.killed("step", CAPTURED, f"step {CAPTURED}")
            self.assertFalse(self.leg("probe")["parts"][captured]["done"])
        self.killed("kernels", "--serve", "kernels")
        failures = [f"{captured}: begun 2 times, it did not come to its end"]
        self.assertEqual(self.leg("probe")["failures"], failures)
        done = {stage for stage, state in self.leg("truth")["stages"].items() if state["complete"]}
        self.assertEqual(done, {"truth: tests", "truth: bits, captured"})
        before = self.leg("truth")

        said = self.script("lease", "--tiny", "--python", str(self.folder / "bin" / "python"), code=run.FAILED)
        self.assertRegex(said, r"lease: 1 failed; all done\n$")
        self.assertEqual(self.calls("test_"), [])  # finished stages do not run again
        for name in ("probe", "truth", "speed", "profile", "paper"):
            leg = self.leg(name)
            self.assertEqual({state["complete"] for state in leg["stages"].values()}, {True})
            self.assertEqual(leg["failures"], failures if name == "probe" else [])
            self.assertEqual({what: part["begun"] for what, part in leg["parts"].items() if part["begun"] != 1},
                             {"probe": {captured: 2}, "speed": {"ceilings": 2}}.get(name, {}))
        self.assertLessEqual(before["raw"].items(), self.leg("truth")["raw"].items())
        self.script("lease", "--tiny", code=run.FAILED)
        self.assertEqual(self.calls(), [])

    def test_a_kill_at_any_moment_leaves_what_was_found(self):
        gpu, found = self.folder / "out" / "gpu.json", {}
        for moment in range(1, 8):  # at the third program of a call, the sixth, ...
            self.log.write_text("")
            process = self.begin("lease", "--tiny")
            while len(self.log.read_text().splitlines()) < 3 * moment and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            legs = json.loads(gpu.read_text())["legs"] if gpu.exists() else {}
            for name, before in found.items():  # finished parts and their results are kept
                for part, state in before["parts"].items():
                    self.assertTrue(legs[name]["parts"][part]["done"] or not state["done"])
                self.assertLessEqual({g["title"] for g in before["groups"]}, {g["title"] for g in legs[name]["groups"]})
            found = legs
            if legs:
                self.assertIn("</html>", (self.folder / "out" / "gpu.html").read_text())
        self.assertGreater(sum(part["done"] for leg in found.values() for part in leg["parts"].values()), 5)

    def test_a_pack_is_unpacked_once_in_the_temporary_folder_and_keeps_the_results(self):
        archive, temporary = self.folder / "made.tar.xz", self.folder / "temporary"
        temporary.mkdir()
        with tarfile.open(archive, "w:xz", preset=0) as tar:
            tar.add(self.folder, "isonorm-gpu/build/gpu", filter=lambda member: None if member.name.endswith(("made.tar.xz", "temporary")) else member)
        asked = ["lease", "--tiny", "--pack", str(archive)]
        self.script(*asked, "--minutes", "0.05", code=run.GO_ON, TMPDIR=str(temporary))
        kept, = temporary.glob("isonorm-gpu-*/results/gpu.json")
        out = self.folder / "out" / "gpu.json"
        self.assertEqual(out.read_bytes(), kept.read_bytes())
        out.unlink()  # some machines empty the folder before each command
        began = kept.parent.parent.stat().st_mtime_ns
        self.script(*asked, TMPDIR=str(temporary))
        self.assertEqual(json.loads(out.read_text())["lease"], 2)
        self.assertEqual(kept.parent.parent.stat().st_mtime_ns, began)
        said = self.script("lease", "--pack", "/no/such/pack", code=run.FAILED)
        self.assertEqual(said, "scripts/gpu: --pack /no/such/pack: No such file or directory\n")

    def test_parts_of_a_leg_are_not_chosen_in_a_lease(self):
        self.assertIn("--only: lease has a plan of its own", self.script("lease", "--only", "steps", code=2))


if __name__ == "__main__":
    unittest.main()
