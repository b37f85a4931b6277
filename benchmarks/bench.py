"""Measures this library against PyTorch and against the machine; prints a table, writes a page and a JSON file.

Run by scripts/bench, which builds what it needs.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import environment
import page
import sections
import table
from sides import ROOT, Failure, check_binary


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="This library against PyTorch and the machine.")
    parser.add_argument("--python", type=Path, help="an interpreter that has PyTorch (default: .venv-bench, made from PyPI)")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="leave torch.compile out")
    parser.add_argument("--full", action="store_true", help="also the forms of the stream on ViT Tiny to Base and GPT-3 Small, "
                        "contexts of up to 32,768 tokens, and activations kept in bf16")
    parser.add_argument("--only", nargs="+", choices=sections.ALL, metavar="SECTION", help=", ".join(sections.ALL))
    parser.add_argument("--quick", action="store_true", help="three rounds of everything")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="folder of bench.html and bench.json")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="the build tree that is measured")
    return parser.parse_args()


def say(what):
    """Progress, on a line that the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


def measure(options):
    started = time.monotonic()
    load = os.getloadavg()
    for program in ("step", "kernels", "tokens"):
        check_binary(options.build / "benchmarks" / program)
    bench = sections.Bench(options, say)
    wanted = options.only or (sections.FULL if options.full else sections.DEFAULT)
    groups = [group for name in wanted for group in sections.ALL[name](bench)]
    say("")
    described = environment.describe(bench.facts, bench.torch_version, load)
    described["took"] = f"{time.monotonic() - started:.0f} s"
    found = environment.warnings(bench.facts, os.environ, load[0] / os.cpu_count())
    return dict(environment=described, warnings=found, groups=groups, raw=bench.raw)


def main():
    options = parse()
    try:
        results = measure(options)
    except Failure as failure:
        say("")
        sys.exit(f"scripts/bench: {failure}")
    except KeyboardInterrupt:
        sys.exit("\nscripts/bench: interrupted")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bench.json").write_text(json.dumps(results, indent=1) + "\n")
    (options.out / "bench.html").write_text(page.page(results))
    print(table.text(results))
    print(f"\n{options.out / 'bench.html'}\n{options.out / 'bench.json'}")


if __name__ == "__main__":
    main()
