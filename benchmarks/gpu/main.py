"""The legs of scripts/gpu: arguments, the device, and what each leg leaves."""

import argparse
import sys
from pathlib import Path

import build
import paper
import profiled
import speed
import truth
from run import FAILED, NO_DEVICE, NOT_BUILT, Leg, NoDevice, NotBuilt, Results
from sides import ROOT, Failure

LEGS = {"build": build.leg, "truth": truth.leg, "speed": speed.leg, "profile": profiled.leg, "paper": paper.leg}


def parse(description):
    parser = argparse.ArgumentParser(prog="scripts/gpu", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"Exit codes: 0 done, {FAILED} something is wrong or did not run, 2 usage, "
                                            f"{NO_DEVICE} there is no device, {NOT_BUILT} programs are missing or cannot be built.")
    parser.add_argument("legs", nargs="+", choices=LEGS, metavar="LEG", help=", ".join(LEGS))
    parser.add_argument("--python", type=Path, help="an interpreter that has PyTorch (default: ours alone is measured)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "gpu", help="the build tree, made here or elsewhere")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu-results", help="folder of gpu.json and gpu.html")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--form", choices=["cuda", "emulated"], default="cuda", help="what `build` makes")
    parser.add_argument("--architectures", default="90a", help="that nvcc compiles for, as ISONORM_CUDA_ARCHITECTURES")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART",
                        help="of truth: bits, proofs, emulation, sanitizers, tests; of speed: steps, forms, norms, ops, other; of "
                             "paper: gpt, training, inference. What the other parts left before is kept")
    parser.add_argument("--minutes", type=float, default=8.5, help="that a leg may take")
    parser.add_argument("--tiny", action="store_true", help="the smallest sizes: for trying the script, its figures say nothing")
    return parser.parse_args()


def main(description):
    options = parse(description)
    worst = 0
    try:
        results = Results(options.out)
        for name in options.legs:
            leg = Leg(name, options, results)
            try:
                LEGS[name](leg)
            except NoDevice as why:
                print(f"scripts/gpu {name}: {why}", file=sys.stderr)
                worst = worst or NO_DEVICE
                continue
            except NotBuilt as why:
                print(f"scripts/gpu {name}: {why}", file=sys.stderr)
                worst = worst or NOT_BUILT
                continue
            except Failure as why:
                leg.failed(name, str(why))
            leg.end()
            worst = worst or (FAILED if leg.failures else 0)
    except KeyboardInterrupt:
        print("\nscripts/gpu: interrupted", file=sys.stderr)
        worst = 130
    sys.exit(worst)
