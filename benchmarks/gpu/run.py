"""What the legs share: their time, their programs, what they print and what they leave."""

import contextlib
import datetime
import json
import os
import shutil
import subprocess
import time

import page
import sides
import table
from sides import Failure, Side

FAILED, NO_DEVICE, NOT_BUILT = 1, 3, 4  # exit codes
LEAST = 5  # seconds that must be left for anything to be begun


class NoDevice(Exception):
    """Why there is none, as one line."""


class NotBuilt(Exception):
    """What is missing, as one line."""


class Results:
    """One JSON file and one page of all legs, written anew after every group of figures."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.json, self.html = folder / "gpu.json", folder / "gpu.html"
        with contextlib.suppress(OSError, ValueError):
            self.all = json.loads(self.json.read_text())
            return
        self.all = {"environment": {}, "legs": {}}

    def save(self):
        for path, text in ((self.json, json.dumps(self.all, indent=1) + "\n"), (self.html, page.page(self.shown()))):
            partial = path.with_suffix(".partial")
            partial.write_text(text)
            partial.rename(path)

    def shown(self):
        """All legs as page.py and table.py take them."""
        where = self.all["environment"]
        legs = self.all["legs"]
        warnings = [f"{name}: {what}" for name, leg in legs.items() for what in leg["failures"] + leg["left_out"]]
        if any(leg["tiny"] for leg in legs.values()):
            warnings.insert(0, "some figures were taken with --tiny, for trying the script: they say nothing about speed")
        if any("emulated" in leg["device"] for leg in legs.values()):
            warnings.insert(0, "the device was emulated on the CPU: times of it say nothing")
        lead = (f"Measured on {where.get('device', 'no device')}. The programs of a comparison take turns, round by round; "
                "a figure is the median of all, a ratio the median of the ratios of the rounds.")
        return dict(title="isonorm on a GPU", lead=lead, environment=where | {"threads": "", "BLAS": "-"}, warnings=warnings,
                    groups=[group for leg in legs.values() for group in leg["groups"]], raw={})


class Leg:
    def __init__(self, name, options, results):
        self.name, self.options, self.results = name, options, results
        self.begun = time.monotonic()
        self.failures, self.left_out, self.groups, self.raw = [], [], [], {}
        self.device_name = ""
        # Groups of a run before, of other parts of this leg; all of them anew where nothing is chosen.
        self.earlier = results.all["legs"].get(name, {}).get("groups", []) if options.only else []

    # --- time ---

    def left(self):
        return self.options.minutes * 60 - (time.monotonic() - self.begun)

    def enough(self, what, seconds):
        """Whether there is time for it; if not, that is noted."""
        if self.left() >= max(seconds, LEAST):
            return True
        self.left_out.append(f"{what} was left out: {max(0, self.left()):.0f} s were left, it takes up to {seconds:.0f} s")
        print(f"  {self.left_out[-1]}", flush=True)
        return False

    # --- what it says and leaves ---

    def say(self, line):
        print(f"[{time.monotonic() - self.begun:5.0f} s] {line}", flush=True)

    def failed(self, what, why):
        self.failures.append(f"{what}: {why}")
        self.say(f"FAILED {what}: {why}")

    def run_parts(self, parts):
        """Those that --only names, or all."""
        unknown = [name for name in self.options.only if name not in parts]
        if unknown:
            raise Failure(f"--only {unknown[0]}: its parts are {', '.join(parts)}")
        for name, part in parts.items():
            if not self.options.only or name in self.options.only:
                part(self)
                self.save()

    def add(self, group):
        """A group of figures (sections.py), printed and saved at once."""
        self.groups.append(group)
        for line in (table.shares if group["kind"] == "shares" else table.bars)(group):
            print("  " + line)
        self.save()

    def save(self):
        self.results.all["environment"] |= self.environment()
        titles = {group["title"] for group in self.groups}
        kept = [group for group in self.earlier if group["title"] not in titles]
        self.results.all["legs"][self.name] = dict(
            groups=self.groups + kept, failures=self.failures, left_out=self.left_out, raw=self.raw, tiny=self.options.tiny,
            device=self.device_name, seconds=time.monotonic() - self.begun,
            date=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"))
        self.results.save()

    def end(self):
        self.save()
        self.say(f"{self.name}: {len(self.failures)} failed, {len(self.left_out)} left out; {self.results.html}")

    def environment(self):
        found = {"device": self.device_name} if self.device_name else {}
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            query = "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit"
            said = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
            if said.returncode == 0:
                found["nvidia-smi"] = "; ".join(said.stdout.split("\n")).strip("; ")
        found["cores"] = str(os.cpu_count())
        return found

    # --- programs ---

    def program(self, *parts):
        path = self.options.build.joinpath(*parts)
        if not path.exists():
            raise NotBuilt(f"{path} is not built: scripts/gpu build, or --build with a tree that was built elsewhere")
        return path

    def run(self, what, command, limit, environment=None):
        """Runs a program within `limit` seconds and what is left of the leg; returns (exit code, its output), and 124
        where the time was over."""
        limit = min(limit, self.left())
        began = time.monotonic()
        try:
            done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=limit, env=os.environ | (environment or {}))
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
            code, output = 124, said.decode(errors="replace") if isinstance(said, bytes) else said
        except OSError as error:
            code, output = 127, error.strerror
        self.raw[what] = dict(command=" ".join(str(c) for c in command), code=code, seconds=time.monotonic() - began,
                              output=output[-4000:])
        return code, output

    def need_device(self):
        """Raises NoDevice where a step of the smallest model does not run there."""
        command = [self.program("benchmarks", "step"), "gpt_smoke", "--device", self.options.device, "--steps", "1", "--json"]
        code, output = self.run("is there a device?", command, 120)
        if code != 0:
            raise NoDevice(last_line(output) or f"{command[0]} ended with {code}")
        facts = json.loads(last_line(output))
        self.device_name = facts["device"]
        self.say(f"{self.name} on {self.device_name}")

    def ours(self, program, *arguments, name="ours"):
        command = [self.program("benchmarks", program), *arguments, "--serve", "--device", self.options.device]
        return Side(name, [str(c) for c in command], len(os.sched_getaffinity(0)), self.left())

    def torch(self, name, program, *arguments):
        """A side of PyTorch, on the device; on the CPU where ours is emulated."""
        device = "cpu" if "emulated" in self.device_name else self.options.device
        command = [self.options.python, sides.ROOT / "benchmarks" / program, *arguments, "--device", device]
        return Side(name, [str(c) for c in command], len(os.sched_getaffinity(0)), self.left())

    @contextlib.contextmanager
    def part(self, what, seconds):
        """What may fail, or have no time left, without the rest of the leg:  with leg.part(...) as go: if go: ..."""
        if not self.enough(what, seconds):
            yield False
            return
        self.say(what)
        try:
            yield True
        except Failure as why:
            self.failed(what, why)


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""


def tool(name, *folders):
    """A program of the toolkit; None where it is not there."""
    return shutil.which(name) or next((str(f) for folder in folders if (f := folder / name).exists()), None)
