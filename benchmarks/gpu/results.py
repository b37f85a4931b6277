"""The results of the legs: one JSON file and one page, and their description of the machine."""

import contextlib
import json
import os
import subprocess

import page
import sides


class Results:
    """One JSON file and one page for all legs, rewritten after every part of a leg."""

    def __init__(self, folder, copy=None):
        """copy: a second folder for the same files. It is read if `folder` has no results."""
        self.folders = [folder, copy] if copy else [folder]
        for f in self.folders:
            try:
                f.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise sides.Failure(f"{f}: {error.strerror}")
        self.device = {}  # device name -> its facts from the smallest step in this call
        for f in self.folders:
            with contextlib.suppress(OSError, ValueError):
                self.all = json.loads((f / "gpu.json").read_text())
                return
        self.all = {"environment": {}, "legs": {}}

    def save(self):
        for name, text in (("gpu.json", json.dumps(self.all, indent=1) + "\n"), ("gpu.html", page.page(self.shown()))):
            self.write(name, text)

    def write(self, name, text):
        for folder in self.folders:
            partial = folder / f"{name}.partial"
            partial.write_text(text)
            partial.rename(folder / name)

    def shown(self):
        """All legs as page.py and table.py take them."""
        where = self.all["environment"]
        legs = self.all["legs"]
        warnings = [f"{name}: {what}" for name, leg in legs.items() for what in leg["failures"] + leg["left_out"]]
        if any(leg["tiny"] for leg in legs.values()):
            warnings.insert(0, "some figures were taken with --tiny, for trying the script: they say nothing about speed")
        if any("emulated" in leg["device"] for leg in legs.values()):
            warnings.insert(0, "the device was emulated on the CPU: its times say nothing")
        lead = (f"Measured on {where.get('device', 'no device')}. The programs of a comparison take turns, round by round; "
                "a figure is the median over all rounds, a ratio the median of the rounds' ratios.")
        return dict(title="isonorm on a GPU", lead=lead, environment=where | {"threads": "", "BLAS": "-"}, warnings=warnings,
                    groups=[group for leg in legs.values() for group in leg["groups"]], raw={})


def machine(facts, build):
    """The machine, as the page shows it. facts: the ready line of our step; build: the build tree."""
    found = {"device": facts["device"], "cores": str(os.cpu_count()), "libraries": "; ".join(facts.get("libraries", []))}
    with contextlib.suppress(OSError, ValueError):
        found["pack"] = json.loads((build.parent.parent / "pack.json").read_text())["version"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        query = "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit"
        said = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
        if said.returncode == 0:
            found["nvidia-smi"] = "; ".join(said.stdout.split("\n")).strip("; ")
    return found
