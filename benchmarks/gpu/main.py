"""The legs of scripts/gpu: arguments, the device, and the results of each leg."""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import build
import lease
import pack
import paper
import probe
import profiled
import speed
import truth
from results import Results
from run import FAILED, GO_ON, NO_DEVICE, NOT_BUILT, Leg, NoDevice, NotBuilt
from sides import ROOT, Failure

LEGS = {"build": build.leg, "pack": pack.leg, "probe": probe.leg, "truth": truth.leg, "speed": speed.leg, "profile": profiled.leg,
        "paper": paper.leg}
LEG = 8.5  # minutes
MINUTES = {"pack": 600}
LIBRARIES = ("libcublasLt.so.", "libcudnn.so.", "libnccl.so.")
ASK = """import importlib.util as u
found = u.find_spec("nvidia")
print(*(found.submodule_search_locations if found else []), sep="\\n")"""


def library_folders(python):
    """The folders under site-packages/nvidia of an interpreter that have them."""
    try:
        asked = subprocess.run([python, "-c", ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise Failure(f"--python {python}: {getattr(error, 'strerror', None) or error}")
    if asked.returncode != 0:
        raise Failure(f"--python {python}: {(asked.stderr.strip().splitlines() or ['it ended without a word'])[-1]}")
    return sorted({str(file.parent) for root in asked.stdout.splitlines() for file in Path(root).glob("*/lib/*.so.*")
                   if file.name.startswith(LIBRARIES)})


def program_environment(tree, python):
    """The environment variables of our programs: shared libraries from a pack, and cuBLASLt, cuDNN and NCCL from pip's folders."""
    theirs = library_folders(python) if python else []
    ours = [str(tree / "lib")] if (tree / "lib").is_dir() else []  # in a pack
    # LD_LIBRARY_PATH needs the paths of PyTorch's libraries, too: cuDNN opens others by name (libnvrtc).
    path = ours + theirs + [os.environ[name] for name in ["LD_LIBRARY_PATH"] if os.environ.get(name)]
    found = {"LD_LIBRARY_PATH": os.pathsep.join(path)} if path else {}
    if theirs and "ISONORM_GPU_LIBRARIES" not in os.environ:
        found["ISONORM_GPU_LIBRARIES"] = os.pathsep.join(theirs)
    return found


def parse(description):
    parser = argparse.ArgumentParser(prog="scripts/gpu", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"Exit codes: 0 done, {FAILED} something is wrong or did not run, 2 usage, "
                                            f"{NO_DEVICE} there is no device, {NOT_BUILT} programs are missing or cannot be built, "
                                            f"{GO_ON} `lease` has more to do: call it again.")
    parser.add_argument("legs", nargs="+", choices=[*LEGS, "lease"], metavar="LEG", help=", ".join([*LEGS, "lease"]))
    parser.add_argument("--python", type=lambda name: Path(shutil.which(name) or name),
                        help="an interpreter that has PyTorch, to compare with; its cuBLAS and cuDNN are ours, too (default: ours "
                             "alone is measured)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "gpu", help="the build tree, made here or elsewhere")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="an archive from `pack`, instead of --build: unpacked once, in the system's "
                                                                  "temporary folder, which also keeps a copy of the results")
    parser.add_argument("--out", type=Path, default=ROOT / "gpu-results", help="folder of gpu.json and gpu.html (default: gpu-results "
                                                                               "next to scripts); `lease` continues the results there, "
                                                                               "or the copy of --pack if the folder is empty")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--form", choices=["cuda", "emulated"], default="cuda", help="what `build` makes")
    parser.add_argument("--architectures", help="that nvcc compiles for, as ISONORM_CUDA_ARCHITECTURES (default: 90a; of `pack` 80;90a)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART",
                        help=f"of truth: {', '.join(truth.PARTS)}; of speed: {', '.join(speed.PARTS)}; of paper: "
                             f"{', '.join(paper.PARTS)}. Earlier results of the other parts are kept")
    parser.add_argument("--minutes", type=float, help=f"time limit of a leg (default: {LEG}; `pack`: none), or for both calls of `lease` "
                                                      f"together, {lease.CALLS[0]}/{sum(lease.CALLS)} for the first (default: "
                                                      f"{sum(lease.CALLS) / 60:.1f})")
    parser.add_argument("--tiny", action="store_true", help="the smallest sizes: for trying the script, its figures say nothing")
    options = parser.parse_args()
    if "lease" in options.legs and options.only:
        parser.error("--only: lease has a plan of its own")
    for name in ("build", "pack", "out", "python"):  # programs run elsewhere; absolute() keeps a venv's link to python
        if getattr(options, name):
            setattr(options, name, getattr(options, name).absolute())
    return options


def run(name, options, results, minutes, stage=None):
    """Runs one leg, or a stage in a plan; returns its exit code."""
    leg = Leg(name, options, results, minutes, stage)
    try:
        LEGS[name](leg)
        leg.end()
    except (NoDevice, NotBuilt) as why:
        print(f"scripts/gpu {name}: {why}", file=sys.stderr)
        return NO_DEVICE if isinstance(why, NoDevice) else NOT_BUILT
    except Failure as why:
        leg.failed(name, str(why))
        leg.end(whole=False)
    return FAILED if leg.failures else 0


def main(description):
    options = parse(description)
    options.begun = time.monotonic()
    worst, kept = 0, None
    try:
        if options.pack:
            options.build, kept = pack.unpacked(options.pack)
        options.libraries = program_environment(options.build, options.python)
        results = Results(options.out, kept)
        for name in options.legs:
            if name == "lease":
                code = lease.lease(options, results, run)
            else:
                minutes = options.minutes or MINUTES.get(name, LEG)
                options.scale = minutes / LEG
                code = run(name, options, results, minutes)
            worst = worst or code
    except Failure as why:
        print(f"scripts/gpu: {why}", file=sys.stderr)
        worst = FAILED
    except KeyboardInterrupt:
        print("\nscripts/gpu: interrupted", file=sys.stderr)
        worst = 130
    sys.exit(worst)
