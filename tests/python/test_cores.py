"""Importing the package leaves the interpreter on the cores that it had, whatever libgomp's variables say."""

import os
import subprocess
import sys
import unittest

SCRIPT = "import os; before = os.sched_getaffinity(0); import isonorm; assert os.sched_getaffinity(0) == before"


class Cores(unittest.TestCase):
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_the_import_keeps_the_mask_of_the_interpreter(self):
        for variable, value in [("OMP_PROC_BIND", "true"), ("OMP_PLACES", "cores"), ("GOMP_CPU_AFFINITY", "0-1")]:
            with self.subTest(variable):
                subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | {variable: value}, check=True)


if __name__ == "__main__":
    unittest.main()
