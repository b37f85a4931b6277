"""The class of a leg: its time, its programs, its output and its results."""

import contextlib
import datetime
import json
import math
import os
import shutil
import signal
import subprocess
import time

import sides
import table
from results import machine
from sides import Failure, Side

FAILED, NO_DEVICE, NOT_BUILT, GO_ON = 1, 3, 4, 5  # exit codes
LEAST = 5  # do not begin anything with fewer seconds left
PART = 180  # time limit of a part, in seconds
TRIES = 2  # attempts for a part that ends the call


class NoDevice(Exception):
    """The reason, as one line."""


class NotBuilt(Failure):
    """The missing thing, as one line."""


class Leg:
    """The parts and results of a leg. A part is recorded when it begins and when it is done. So a stage of a plan (lease.py)
    continues after an earlier call was cut short: it keeps finished parts, and a part that was begun twice and never ended fails."""

    def __init__(self, name, options, results, minutes, stage=None):
        self.name, self.options, self.results, self.stage = name, options, results, stage
        self.begun, self.ends = time.monotonic(), time.monotonic() + 60 * minutes
        self.part_ends = math.inf
        self.only = stage.parts if stage else options.only
        earlier = results.all["legs"].get(name, {})
        # Groups that an earlier run made for other parts of this leg. Empty if the whole leg runs.
        self.groups = earlier.get("groups", []) if stage or options.only else []
        earlier = earlier if stage else {}
        self.parts, self.raw, self.failures, self.stages = (
            earlier.get(k, empty) for k, empty in (("parts", {}), ("raw", {}), ("failures", []), ("stages", {})))
        self.spent = self.stages.get(stage.name, {}).get("seconds", 0) if stage else 0
        self.met, self.left_out, self.complete = set(), {}, False  # met: parts that this stage has asked for
        self.device_name = ""

    # --- time ---

    def left(self):
        return min(self.ends, self.part_ends) - time.monotonic()

    def enough(self, what, seconds):
        """True if `seconds`, or less if --minutes is short, are left. If not, records that `what` was left out."""
        seconds *= min(1, self.options.scale)
        left = max(0, self.left())
        if left >= max(seconds, LEAST):
            return True
        self.leave_out(what, f"was left out: {left:.0f} s were left, it takes up to {seconds:.0f} s")
        return False

    # --- messages and results ---

    def say(self, line):
        print(f"[{time.monotonic() - self.begun:5.0f} s] {line}", flush=True)

    def leave_out(self, what, why):
        self.left_out[what] = f"{what} {why}"
        if not self.stage:
            print(f"  {self.left_out[what]}", flush=True)

    def failed(self, what, why):
        if f"{what}: {why}" not in self.failures:
            self.failures.append(f"{what}: {why}")
        self.say(f"FAILED {what}: {why}")

    def run_parts(self, parts):
        """Runs the chosen parts, or all parts."""
        unknown = [name for name in self.only if name not in parts]
        if unknown:
            raise Failure(f"--only {unknown[0]}: its parts are {', '.join(parts)}")
        for name, part in parts.items():
            if not self.only or name in self.only:
                part(self)
                self.save()

    def add(self, group):
        """Rows of a group of figures (sections.py), printed and saved at once; they join those that a group of this title has."""
        for line in (table.shares if group["kind"] == "shares" else table.bars)(group):
            print("  " + line)
        names = {row["name"] for row in group["rows"]}
        earlier = self.group(group["title"])
        if earlier:
            group["rows"] = [row for row in earlier["rows"] if row["name"] not in names] + group["rows"]
            group["series"] = list(dict.fromkeys(earlier["series"] + group["series"]))
            if group["kind"] == "lines":  # a line needs a value in every row
                group["series"] = [s for s in group["series"] if all(s in row["values"] for row in group["rows"])]
            self.groups[self.groups.index(earlier)] = group
        else:
            self.groups.append(group)
        self.save()

    def group(self, title):
        return next((group for group in self.groups if group["title"] == title), None)

    def save(self):
        if self.stage:
            self.stages[self.stage.name] = dict(seconds=self.spent + time.monotonic() - self.begun, complete=self.complete)
        self.results.all["legs"][self.name] = dict(
            groups=self.groups, failures=self.failures, left_out=list(self.left_out.values()), raw=self.raw, parts=self.parts,
            stages=self.stages, tiny=self.options.tiny, device=self.device_name,
            date=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"))
        self.results.save()

    def end(self, whole=True):
        """whole: the leg went through all of its parts."""
        self.complete = whole and all(self.parts[what]["done"] for what in self.met)
        self.save()
        self.say(f"{self.stage.name if self.stage else self.name}: {len(self.failures)} failed, {len(self.left_out)} left out; {self.results.folders[0] / 'gpu.html'}")

    # --- programs ---

    def program(self, *parts):
        path = self.options.build.joinpath(*parts)
        if not path.exists():
            raise NotBuilt(f"{path} is not built: scripts/gpu build, or --build with a tree that was built elsewhere")
        return path

    def run(self, what, command, limit, environment=None):
        """Runs a program of ours within `limit` seconds; returns (exit code, its output), and 124 where the time was over.
        Throws where it was the leg's time that was over. With --minutes longer than the default the limit is longer."""
        limit *= max(1, self.options.scale)
        cut = self.ends - time.monotonic() < limit
        began = time.monotonic()
        try:
            with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", cwd=sides.ROOT, start_new_session=True,
                                  env=os.environ | self.options.libraries | (environment or {})) as program:
                try:
                    output, _ = program.communicate(timeout=max(0, min(limit, self.left())))
                    code = program.returncode
                except BaseException as late:  # kills its children, too: a sanitizer's program would load the device on
                    os.killpg(program.pid, signal.SIGKILL)
                    if not isinstance(late, subprocess.TimeoutExpired):
                        raise
                    code, output = 124, program.communicate()[0]
        except OSError as error:
            code, output = 127, error.strerror
        self.raw[what] = dict(command=" ".join(str(c) for c in command), environment=environment or {}, code=code,
                              seconds=time.monotonic() - began, output=output[-4000 if code else -400:])
        if code == 124 and cut:
            raise Failure("the time was over")
        return code, output

    def need_device(self):
        """Raises NoDevice if a step of the smallest model does not run there."""
        known = self.results.device
        if self.options.device not in known:
            command = [self.program("benchmarks", "step"), "gpt_smoke", "--device", self.options.device, "--steps", "1", "--json"]
            code, output = self.run("is there a device?", command, 120)
            if code != 0:
                raise NoDevice(last_line(output) or f"{command[0]} ended with {code}")
            known[self.options.device] = json.loads(last_line(output))
        self.facts = known[self.options.device]
        self.device_name = self.facts["device"]
        self.results.all["environment"] |= machine(self.facts, self.options.build)
        self.say(f"{self.name} on {self.device_name}")
        for library in self.facts.get("libraries", []):  # as gpu::line_of writes it
            if ": none, " in library:
                self.leave_out(library, "(our own kernels do its work)")

    def emulated(self):
        return "emulated" in self.device_name

    def ours(self, program, *arguments, name="ours", environment=None):
        command = [self.program("benchmarks", program), *arguments, "--serve", "--device", self.options.device]
        side = Side(name, [str(c) for c in command], len(os.sched_getaffinity(0)), max(0.1, self.left()),
                    self.options.libraries | (environment or {}))
        for library in side.facts.get("libraries", []):  # if a library refuses a product or attention, our slower kernel runs
            if "; refused " in library:
                self.failed(name, library)
        return side

    def torch(self, name, program, *arguments):
        """A side of PyTorch, on the device; on the CPU where ours is emulated."""
        command = [self.options.python, sides.ROOT / "benchmarks" / program, *arguments, "--device",
                   "cpu" if self.emulated() else self.options.device]
        return Side(name, [str(c) for c in command], len(os.sched_getaffinity(0)), max(0.1, self.left()))

    @contextlib.contextmanager
    def part(self, what, seconds, limit=PART):
        """A part may fail, or have no time left, without ending the leg:  with leg.part(...) as go: if go: ...
        It may take `limit` seconds, scaled by --minutes. If the leg's end cuts a part short, the part is left out and does not fail."""
        self.met.add(what)
        state = self.parts.setdefault(what, {"begun": 0, "done": False})
        if not state["done"] and state["begun"] == TRIES:
            self.failed(what, f"begun {TRIES} times, it did not come to its end")
            state["done"] = True
        if state["done"] or not self.enough(what, seconds):
            yield False
            return
        self.say(what)
        state["begun"] += 1
        self.save()
        self.part_ends = time.monotonic() + limit * self.options.scale
        try:
            yield True
            state["done"] = True
        except Exception as why:  # unexpected exceptions too: one error must not end the time on a device
            state["done"] = self.ends - time.monotonic() > 1
            if state["done"]:
                self.failed(what, why if isinstance(why, Failure) else f"{type(why).__name__}: {why}")
            else:
                self.leave_out(what, "was cut short")
                state["begun"] -= 1
        self.part_ends = math.inf
        self.save()


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""


def tool(name, *folders):
    """A program of the toolkit; None if it is not there."""
    return shutil.which(name) or next((str(f) for folder in folders if (f := folder / name).exists()), None)
