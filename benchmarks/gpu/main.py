"""The legs of scripts/gpu: arguments, the device, and what each leg leaves."""

import argparse
import shutil
import sys
import time
from pathlib import Path

import build
import libraries
import pack
import paper
import probe
import profiled
import speed
import truth
from results import Results
from run import FAILED, GO_ON, LEAST, NO_DEVICE, NOT_BUILT, Leg, NoDevice, NotBuilt
from sides import ROOT, Failure

LEGS = {"build": build.leg, "pack": pack.leg, "probe": probe.leg, "truth": truth.leg, "speed": speed.leg, "profile": profiled.leg,
        "paper": paper.leg}
# Minutes of each leg in `hour`, where what they leave out comes when all had theirs.
HOUR = {"probe": 2, "truth": 10, "speed": 10, "profile": 3, "paper": 0}
MINUTES = {"pack": 600}


def parse(description):
    parser = argparse.ArgumentParser(prog="scripts/gpu", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"Exit codes: 0 done, {FAILED} something is wrong or did not run, 2 usage, "
                                            f"{NO_DEVICE} there is no device, {NOT_BUILT} programs are missing or cannot be built, "
                                            f"{GO_ON} `hour` has more to do: call it again.")
    parser.add_argument("legs", nargs="+", choices=[*LEGS, "hour"], metavar="LEG", help=", ".join([*LEGS, "hour"]))
    parser.add_argument("--python", type=lambda name: Path(shutil.which(name) or name),
                        help="an interpreter that has PyTorch, to compare with; its cuBLAS and cuDNN are ours, too (default: ours "
                             "alone is measured)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "gpu", help="the build tree, made here or elsewhere")
    parser.add_argument("--out", type=Path, default=ROOT / "gpu-results", help="folder of gpu.json and gpu.html (default: gpu-results "
                                                                               "beside scripts); `hour` goes on from it")
    parser.add_argument("--copy", type=Path, metavar="FOLDER", help="a second folder for the same files")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--form", choices=["cuda", "emulated"], default="cuda", help="what `build` makes")
    parser.add_argument("--architectures", help="that nvcc compiles for, as ISONORM_CUDA_ARCHITECTURES (default: 90a; of `pack` 80;90a)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART",
                        help=f"of truth: {', '.join(truth.PARTS)}; of speed: {', '.join(speed.PARTS)}; of paper: "
                             f"{', '.join(paper.PARTS)}. What the other parts left before is kept")
    parser.add_argument("--minutes", type=float, help="that a leg, or a call of `hour`, may take (default: 8.5; `pack`: as long as it "
                                                      "takes)")
    parser.add_argument("--tiny", action="store_true", help="the smallest sizes: for trying the script, its figures say nothing")
    options = parser.parse_args()
    for name in ("build", "out", "copy", "python"):  # programs run in the folder of the script; the python of a venv stays a link
        if getattr(options, name):
            setattr(options, name, getattr(options, name).absolute())
    return options


def run(name, options, results, minutes, go_on=False):
    """One leg; returns its exit code."""
    leg = Leg(name, options, results, minutes, go_on)
    try:
        LEGS[name](leg)
    except (NoDevice, NotBuilt) as why:
        print(f"scripts/gpu {name}: {why}", file=sys.stderr)
        return NO_DEVICE if isinstance(why, NoDevice) else NOT_BUILT
    except Failure as why:
        leg.failed(name, str(why))
    leg.end()
    return FAILED if leg.failures else 0


def hour(options, results):
    """All legs, each within its minutes, then what they left out, as far as this call has time; the next goes on from there."""
    ends = time.monotonic() + 60 * (options.minutes or 8.5)
    found = results.all["legs"]
    for first in (True, False):
        for name, minutes in HOUR.items():
            left = (ends - time.monotonic()) / 60
            if first:
                left = min(left, minutes - found.get(name, {}).get("seconds", 0) / 60)
            if left * 60 < 4 * LEAST or found.get(name, {}).get("complete"):
                continue
            code = run(name, options, results, left, go_on=True)
            if code in (NO_DEVICE, NOT_BUILT):
                return code
    open_legs = [name for name in HOUR if not found.get(name, {}).get("complete")]
    failures = sum(len(found[name]["failures"]) for name in HOUR if name in found)
    print(f"hour: {failures} failed; " + (f"{', '.join(open_legs)}: not done, the next call goes on" if open_legs else "all done"))
    return GO_ON if open_legs else FAILED if failures else 0


def main(description):
    options = parse(description)
    worst = 0
    try:
        options.libraries = libraries.environment(options.build, options.python)
        results = Results(options.out, options.copy)
        for name in options.legs:
            code = hour(options, results) if name == "hour" else run(name, options, results, options.minutes or MINUTES.get(name, 8.5))
            worst = worst or code
    except Failure as why:
        print(f"scripts/gpu: {why}", file=sys.stderr)
        worst = FAILED
    except KeyboardInterrupt:
        print("\nscripts/gpu: interrupted", file=sys.stderr)
        worst = 130
    sys.exit(worst)
