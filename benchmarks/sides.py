"""Programs that are measured against each other: started, asked in turn, compared round by round.

Other load on the machine affects all alike, and a ratio is the median of the rounds' ratios.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-bench"


class Failure(Exception):
    """What went wrong, as one line for the user."""


def set_up_torch():
    """The interpreter of .venv-bench, with PyTorch in it; a half-made environment is never left under that name."""
    python = VENV / "bin" / "python"
    if python.exists():
        return python
    print("installing PyTorch from PyPI into .venv-bench (several GB, once)", file=sys.stderr)
    partial = VENV.with_name(".venv-bench.partial")
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", partial], check=True)
        subprocess.run([partial / "bin" / "python", "-m", "pip", "install", "-q", "torch", "numpy"], check=True)
    except subprocess.CalledProcessError:
        raise Failure("could not set PyTorch up: needs python3-venv and access to PyPI, or --python with a PyTorch of your own")
    partial.rename(VENV)  # scripts in its bin/ are not used, so the environment may be moved
    return python


class Side:
    """One process that speaks the protocol of benchmarks/serve.h. `facts` is what its ready line says."""

    def __init__(self, name, command, threads, limit=None, environment=None):
        """limit: seconds until the process is ended, whatever it is doing; None: as long as it takes."""
        self.name = name
        self.errors = tempfile.TemporaryFile("w+")  # not a pipe: nobody reads it meanwhile, and a full pipe would block
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        started = time.monotonic()
        try:
            self.process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": str(threads)} | (environment or {}), **pipes)
        except OSError as error:
            raise Failure(f"{name}: {command[0]}: {error.strerror}")
        self.timer = threading.Timer(limit, self.process.kill) if limit else None
        if self.timer:
            self.timer.daemon = True
            self.timer.start()
        try:
            self.facts = self.read()
        except Failure:
            self.__exit__()
            raise
        if "first_step_at" in self.facts:
            self.facts["start_ms"] = 1e3 * (self.facts["first_step_at"] - started)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            reason = self.errors.read().strip().splitlines() or ["ended without a reason"]
            raise Failure(f"{self.name}: {reason[-1]}")
        return json.loads(line)

    def ask(self, times, work):
        with contextlib.suppress(BrokenPipeError):  # then read() reports why it ended
            self.process.stdin.write(f"go {times} {work}\n")
            self.process.stdin.flush()

    def go(self, times, work):
        self.ask(times, work)
        return self.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.timer:
            self.timer.cancel()
        self.process.kill()
        self.process.communicate()
        self.errors.close()


class AtOnce:
    """Sides that work at the same time; a time is the mean of theirs."""

    def __init__(self, *sides):
        self.sides = sides

    def go(self, times, work):
        for side in self.sides:
            side.ask(times, work)
        answers = [side.read() for side in self.sides]
        return {"ms": [statistics.mean(times) for times in zip(*(answer["ms"] for answer in answers))]}


class Work(NamedTuple):
    """A request to a side, and the field of its answer that counts."""

    side: "Side | AtOnce"
    words: str
    field: str = "ms"


def alternate(works, seconds, times=1, rounds=None, before=2):
    """Lets works (name -> Work) take turns, `times` each in a round; every one is done twice, or `before` times, before.

    As many rounds as fit into `seconds`, from 3 to 15, or `rounds` of them. Gives name -> {"rounds": [[ms, ...], ...],
    "median_ms", "min_ms"} and what else the last answer says."""
    for work in works.values():
        if before:
            work.side.go(before, work.words)
    results = {name: {"rounds": []} for name in works}
    end, done = time.monotonic() + seconds, 0
    while done < (rounds or 15) and (rounds or done < 3 or time.monotonic() < end):
        for name, work in works.items():
            answer = work.side.go(times, work.words)
            results[name]["rounds"].append(answer[work.field])
            results[name].update({key: value for key, value in answer.items() if not key.endswith("ms")})
        done += 1
    for result in results.values():
        all_times = [t for times_of_round in result["rounds"] for t in times_of_round]
        result.update(median_ms=statistics.median(all_times), min_ms=min(all_times))
    return results


def ratios(ours, theirs):
    """Ours / theirs in each round, by the medians of the round."""
    return [statistics.median(a) / statistics.median(b) for a, b in zip(ours["rounds"], theirs["rounds"])]


def ratio(ours, theirs):
    return statistics.median(ratios(ours, theirs))


def check_binary(path):
    if not path.exists():
        raise Failure(f"{path} is not built: cmake --build --preset release --target benchmarks")
