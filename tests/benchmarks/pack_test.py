#!/usr/bin/env python3
"""Tests of `scripts/gpu pack`.   usage: pack_test.py BUILD-TREE FORM   (FORM: off, cuda or emulated)

A pack of this tree's programs runs in a mount namespace that has neither this repository nor what Debian's packages for
developers, OpenBLAS or the compiler's run-time libraries bring."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "gpu"), str(ROOT / "benchmarks")]

import pack  # noqa: E402
import run  # noqa: E402

BUILD, FORM = Path(sys.argv[1]).absolute(), sys.argv[2]
CUDA = BUILD / "tests" / "test_gpu_cuda"
PROGRAMS = ["benchmarks/step", "tools/isonorm"] + ([f"tests/{CUDA.name}"] if CUDA.exists() else [])
STUB = next(Path("/usr/local/cuda").glob("lib*/stubs/libcuda.so"), None)  # a driver that says that it is none
HIDE = """
for folder in /usr/include /usr/local/cuda /usr/share/datasets $FOLDERS; do
  [ ! -d $folder ] || mount -t tmpfs none $folder || exit 97
done
for file in $FILES; do mount --bind /dev/null $file || exit 97; done
exec "$@"
"""


class Pack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        archive = Path(cls.folder.name) / "made.tar.xz"
        pack.make(BUILD, PROGRAMS, archive, preset=0)
        with tarfile.open(archive) as tar:
            tar.extractall(cls.folder.name)
        cls.root = Path(cls.folder.name) / pack.NAME
        cls.libraries = {name: path for program in PROGRAMS for name, path in pack.libraries(BUILD / program).items()}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def bare(self, *command, **variables):
        """The command where nothing is installed."""
        hidden = {"FOLDERS": f"{ROOT} {BUILD}", "FILES": " ".join(str(path.resolve()) for path in self.libraries.values())}
        users = [] if os.geteuid() == 0 else ["--map-root-user"]
        done = subprocess.run(["unshare", "--mount", *users, "sh", "-c", HIDE, "sh", *map(str, command)], cwd=self.folder.name,
                              capture_output=True, text=True, timeout=1800, env=os.environ | hidden | variables)
        if done.returncode == 97 or "unshare failed" in done.stderr:
            self.skipTest("no mount namespace can be made here: " + run.last_line(done.stderr))
        return done

    def test_it_has_what_the_programs_need_and_not_the_c_library(self):
        names = {path.name for path in (self.root / "build/gpu/lib").iterdir()}
        self.assertEqual(names, set(self.libraries))
        self.assertTrue(any(name.startswith("libopenblas") for name in names))
        self.assertFalse({name for name in names if name.startswith(("libc.", "ld-linux", "libm."))})
        self.assertIn("version", json.loads((self.root / "pack.json").read_text()))
        self.assertLess((self.root / "build/gpu/benchmarks/step").stat().st_size, (BUILD / "benchmarks/step").stat().st_size)  # stripped

    def test_programs_run_where_nothing_is_installed(self):
        step = self.root / "build/gpu/benchmarks/step"
        self.assertEqual(self.bare(step, "gpt_smoke", "--steps", "1").returncode, 127)  # its libraries are hidden indeed
        path = {"LD_LIBRARY_PATH": str(self.root / "build/gpu/lib")}
        done = self.bare(step, "gpt_smoke", "--steps", "1", "--json", **path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["loss"], 0)

    @unittest.skipUnless(CUDA.exists() and STUB, "no CUDA compiler")
    def test_cuda_programs_start_without_a_driver_and_with_one_that_has_no_device(self):
        driver = Path(self.folder.name) / "driver"
        driver.mkdir()
        shutil.copy(STUB, driver / "libcuda.so.1")
        for folders in ([], [driver]):
            path = ":".join(str(f) for f in [self.root / "build/gpu/lib", *folders])
            done = self.bare(self.root / f"build/gpu/tests/{CUDA.name}", "*device*", LD_LIBRARY_PATH=path)
            self.assertIn("All tests passed", done.stdout, done.stdout + done.stderr)

    def test_legs_find_their_programs_and_say_that_there_is_no_device(self):
        done = self.bare(sys.executable, self.root / "scripts/gpu", "lease", "--minutes", "1")
        if FORM == "emulated":
            return self.assertIn(done.returncode, (run.FAILED, run.GO_ON), done.stdout)  # test programs are not in this pack
        self.assertEqual(done.returncode, run.NO_DEVICE, done.stdout + done.stderr)
        why = "this library was built without it" if FORM == "off" else "no device: [^\n]*"
        self.assertRegex(done.stderr, f"^scripts/gpu probe: step: --device cuda:0: {why}\n$")
        self.assertTrue((self.root / "gpu-results").is_dir())  # beside scripts, wherever it is called from


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
