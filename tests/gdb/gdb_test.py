#!/usr/bin/env python3
"""gdb_test.py PROGRAM: what core/tensor_gdb.py prints; in gdb itself if it is there and may run programs."""
import os
import shutil
import struct
import subprocess
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
printers = os.path.join(root, "core", "tensor_gdb.py")
sys.path.insert(0, os.path.dirname(printers))
sys.dont_write_bytecode = True
import tensor_gdb  # noqa: E402


def equal(got, expected):
    if got != expected:
        sys.exit("gdb: got %r, expected %r" % (got, expected))


def array(dtype, shape, strides, values, limit=200):
    memory = b"".join(struct.pack(tensor_gdb.ELEMENTS[dtype], v) for v in values)
    return tensor_gdb.describe(dtype, shape, strides, lambda i, size: memory[i * size:(i + 1) * size], limit)


equal(array("f32", [2, 2], [2, 1], [1, 0.1, -3, 16777216]), "f32 [2, 2] [[1, 0.1], [-3, 16777216]]")
equal(array("f32", [2, 2], [1, 2], [1, 2, 3, 4]), "f32 [2, 2] [[1, 3], [2, 4]]")
equal(array("f32", [2], [0], [7]), "f32 [2] [7, 7]")
equal(array("f64", [3], [1], [1 / 3, float("inf"), float("nan")]), "f64 [3] [0.3333333333333333, inf, nan]")
equal(array("f64", [], [], [2]), "f64 [] 2")
equal(array("f32", [0, 3], [0, 0], []), "f32 [0, 3] []")
equal(array("bf16", [3], [1], [0x3F80, 0x3DCD, 0x7F7F]), "bf16 [3] [1, 0.1, 3.39e+38]")
equal(array("i64", [2], [1], [-1, 2**62]), "i64 [2] [-1, 4611686018427387904]")
equal(array("u8", [9], [1], range(9), 8), "u8 [9] [0, 1, 2, ..., 6, 7, 8]")
equal(array("u8", [9], [1], range(9), None), "u8 [9] [0, 1, 2, 3, 4, 5, 6, 7, 8]")

EXPECTED = {
    "x": "f32 [2, 3] [[1.5, -2, 0.1], [4, 5, 6]]",
    "turned": "f32 [3, 2] [[1.5, 4], [-2, 5], [0.1, 6]]",
    "second": "f32 [3] [4, 5, 6]",
    "none": "(undefined tensor)",
    "empty": "f32 [0, 3] []",
    "scalar": "f32 [] 7",
    "rounded": "bf16 [2, 3] [[1.5, -2, 0.1], [4, 5, 6]]",
    "ids": "i64 [2] [1, -2]",
    "mask": "u8 [2] [1, 0]",
    "wide": "f64 [1] [0.3333333333333333]",
    "column": "f32 [2] [1.5, 4]",
    "weight": "f32 [1, 2] [[0.25, 0.25]]",
    "shape": "[2, 3]",
}
gdb = shutil.which("gdb")
if not gdb or "exited normally" not in subprocess.run([gdb, "-nx", "-batch", "-ex", "run", "/bin/true"],
                                                      capture_output=True, text=True).stdout:
    print("gdb is not there, or may not run programs: tested without it")
    sys.exit()
program = os.path.abspath(sys.argv[1])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "program.cpp")) as f:
    stop = next(n for n, line in enumerate(f, 1) if "gdb stops here" in line)
commands = ["source " + printers, "break program.cpp:%d" % stop, "run"] + ["print " + name for name in EXPECTED] + ["print many", "kill"]
said = subprocess.run([gdb, "-nx", "-batch"] + [a for c in commands for a in ("-ex", c)] + [program], capture_output=True, text=True)
lines = [line.split(" = ", 1)[1] for line in said.stdout.splitlines() if line.startswith("$")]
if len(lines) != len(EXPECTED) + 1:
    sys.exit("gdb: " + said.stdout + said.stderr)
for line, expected in zip(lines, EXPECTED.values()):
    equal(line, expected)
equal(lines[-1].startswith("i64 [10, 100] [[0, 1, 2, ..., 97, 98, 99], [100, ") and ", ..., " in lines[-1], True)
