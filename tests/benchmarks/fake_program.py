"""Stands in for every program that scripts/gpu starts, by the name that it is called by; works at once and says what it was asked.

FAKE_LOG: a file that gets a JSON line a call. FAKE_FAIL, FAKE_HANG: words; a call whose arguments, environment and name
have all of them fails, or never ends. The first test case of a test program passes all the same."""

import json
import os
import sys
import time
from pathlib import Path

NAME, ARGUMENTS = Path(sys.argv[0]).name, sys.argv[1:]
VARIABLES = {k: v for k, v in os.environ.items() if k.startswith("ISONORM_") or k in ("LD_LIBRARY_PATH", "OMP_NUM_THREADS")}
WORDS = [NAME, *ARGUMENTS, *(f"{k}={v}" for k, v in VARIABLES.items())]


def chosen(variable):
    wanted = os.environ.get(variable, "").split()
    return bool(wanted) and all(any(word == w for w in WORDS) for word in wanted)


def say(**fields):
    print(json.dumps(fields), flush=True)


def serve():
    say(event="ready", device="a device that is played", parameters=7, gelu="tanh", threads=1, version="0")
    for line in sys.stdin:
        times = int(line.split()[1])
        values = [1.0 + i for i in range(times)]
        say(ms=values, forward_ms=values, backward_ms=values, losses=values, kernels={"matmul": 2.0}, between=0.1, peak_tensor_bytes=1e9)


def option(name):
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else None


def main():
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps({"name": NAME, "arguments": ARGUMENTS, "variables": VARIABLES}) + "\n")
    while chosen("FAKE_HANG"):
        time.sleep(1)
    if "--list-test-names-only" in ARGUMENTS:
        print("one, of two [things]\nanother")
        sys.exit(2)  # as Catch2 does
    if chosen("FAKE_FAIL") and ARGUMENTS != [r"one\, of two \[things]"]:
        print("a_test.cpp:1: FAILED:\n  it is wrong")
        sys.exit(1)
    if NAME == "python":
        if ARGUMENTS[0] == "-c":
            return print(os.environ.get("FAKE_NVIDIA", "") if "nvidia" in ARGUMENTS[1] else "2.0")
        return serve()
    if "--serve" in ARGUMENTS:
        return serve()
    if NAME == "step":
        if trace := os.environ.get("ISONORM_PROFILE"):
            Path(trace).write_text("[]")
        return say(device="a device that is played", libraries=["cuBLASLt 1, /here", "cuDNN: none, it hides"])
    if NAME == "gpu_roofline":
        counts = dict(floor_ms={"H100": 1.0, "H200": 1.0}, launches=1)
        return say(layer_norm=dict(slots={"matmul": counts}, all=counts, waits=1))
    if option("--log"):
        Path(option("--log")).write_text('{"loss": 1.5}\n')
        Path(option("--checkpoint")).write_bytes(b"weights")
    print("All tests passed (3 assertions in 2 test cases)")


main()
