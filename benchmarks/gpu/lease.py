"""`scripts/gpu lease`: the plan for a machine that is lent for a quarter of an hour, in two calls, the most important stages first."""

import time
from typing import NamedTuple

from run import FAILED, GO_ON, LEAST, NO_DEVICE, NOT_BUILT

# Seconds for each call of a lease, in order. A lease of 900 s begins with a start of 60 to 90 s, and a command ends
# after 600 s.
CALLS = (500, 180)


class Stage(NamedTuple):
    leg: str
    parts: tuple = ()  # parts of the leg; (): all parts
    seconds: float = 0  # planned; 0: what the other stages leave

    @property
    def name(self):
        return f"{self.leg}: {', '.join(self.parts)}" if self.parts else self.leg


PLAN = [Stage("probe", seconds=40), Stage("truth", ("tests",), 110), Stage("truth", ("bits", "captured"), 60),
        Stage("speed", ("ceilings", "gpt2"), 210), Stage("profile", seconds=70), Stage("speed", ("choices",), 110),
        Stage("truth", ("memcheck",), 60), Stage("truth", ("emulation",)), Stage("speed", ("steps", "forms", "norms", "ops", "other")),
        Stage("truth", ("sanitizers",)), Stage("truth", ("proofs",)), Stage("paper")]


def lease(options, results, run):
    """One call. Each stage takes at most its planned seconds, scaled by --minutes. Unfinished stages then share the remaining
    time, in the same order. run(leg, options, results, minutes, stage) -> exit code."""
    calls = results.all.get("lease", 0)
    options.scale = scale = 60 * options.minutes / sum(CALLS) if options.minutes else 1
    ends = options.begun + scale * CALLS[calls % len(CALLS)]
    results.all["lease"] = calls + 1
    results.save()

    def state(stage):
        return results.all["legs"].get(stage.leg, {}).get("stages", {}).get(stage.name, {"seconds": 0, "complete": False})

    for planned in (True, False):
        for stage in PLAN:
            left = ends - time.monotonic()
            if planned:
                left = min(left, scale * stage.seconds - state(stage)["seconds"])
            if left < 2 * LEAST or state(stage)["complete"]:
                continue
            code = run(stage.leg, options, results, left / 60, stage)
            if code in (NO_DEVICE, NOT_BUILT):  # this call does not count
                results.all["lease"] = calls
                results.save()
                return code
    still = [stage.name for stage in PLAN if not state(stage)["complete"]]
    failures = sum(len(leg["failures"]) for leg in results.all["legs"].values())
    print(f"lease: {failures} failed; " + (f"not done: {'; '.join(still)}; the next call continues" if still else "all done"))
    return GO_ON if still else FAILED if failures else 0
