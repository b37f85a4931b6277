"""Compares the pairs of the corpus and prints the table of docs/python.md. In tests/python, with the package isonorm on PYTHONPATH:

    python -m corpus.table [--right | --wrong] [--list] [WORD...]

WORD: only rows whose names have one of these words. --list: a line for each run, and what compare() says if a run is not as it should be.
"""

import argparse
import collections
import re
import sys

import isonorm

from . import right, wrong  # noqa: F401
from .rows import RIGHT, WRONG, adamw

#: A true cause that says no more than the place: the classes of the two modules there, or that an update differs.
PLACE = re.compile(r"\S+ is \w+\(.*\), .* of b is \w+\(.*\)$|the update: |the optimizer: a's is \w+, b's is \w+;")


RIGHT_AS_IT_SHOULD_BE = ("equivalent",)
WRONG_AS_IT_SHOULD_BE = ("right cause", "right place", "not to be seen")

#: Options of compare() that ask for a training.
TRAINING = {"optimizer", "schedule", "accumulate", "clip"}


def runs_of(row):
    """The runs of a right row, (seed, options): gradients at five points, a training, and gradients in f32. All are trainings if the
    row compares two ways to train."""
    train = {"optimizer": adamw, **{name: given for name, given in row.options.items() if name in TRAINING}}
    trains_in_two_ways = any(isinstance(given, tuple) for given in train.values())
    found = [(1, {}), (2, train), (3, {"dtype": "f32"})]
    if trains_in_two_ways:
        found = [(seed, {**options, **train}) for seed, options in found]
    return found


def compared(row, seed, options=None):
    """compare() of a row's pair; options: in place of those that ask for a training."""
    a, b = row.pair(seed)
    given = row.options
    if options is not None:
        given = {**{name: value for name, value in given.items() if name not in TRAINING}, **options}
    return isonorm.compare(a, b, batches=row.drawn(seed), **given)


def judged(row, r):
    """What became of a planted mistake: "right cause", "right place", "found", "wrong cause", "undecided", "missed", or, if no batch
    shows it, "not to be seen"."""
    if r.verdict != "different":
        return "not to be seen" if row.unseen else "missed" if r.verdict == "equivalent" else "undecided"
    said, cause = r.likely_cause or "", row.cause or "no cause is expected"
    if PLACE.match(said) and "of b is" not in cause:
        said = ""
    if said:
        return "right cause" if re.search(cause, said) else "wrong cause"
    places = [r.first_difference.tensor, r.first_difference.partner] if r.first_difference else r.reason.split()[:1]
    return "right place" if any(re.fullmatch(row.place or "", place) for place in places) else "found"


def outcomes(rows, runs, judge, listed, as_should_be):
    """How many runs came out how; a line for each if `listed`."""
    counts = collections.Counter()
    for row in rows:
        for seed, options in runs(row):
            try:
                r = compared(row, seed, options)
                came = judge(row, r)
            except ValueError as e:
                r, came = e, "refused"
            counts[came] += 1
            if listed:
                print(f"{came:15} {row.name}" + (f" ({', '.join(options) or 'gradients'})" if options is not None else ""), flush=True)
                if came not in as_should_be:
                    print(r, flush=True)
    return counts


def table(title, names, counts):
    """Prints a table of markdown, with one row."""
    print(f"| {title} | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    print("| | " + " | ".join(str(counts[name]) for name in names) + " |\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--right", action="store_true", help="right pairs alone")
    parser.add_argument("--wrong", action="store_true", help="wrong pairs alone")
    parser.add_argument("--list", action="store_true", help="a line for each run")
    given = parser.parse_args()

    def chosen(rows):
        return [row for row in rows if not given.words or any(word in row.name for word in given.words)]

    bad = 0
    if not given.wrong:
        rows = chosen(RIGHT)
        counts = outcomes(rows, runs_of, lambda row, r: r.verdict, given.list, RIGHT_AS_IT_SHOULD_BE)
        table(f"{len(rows)} right pairs, {counts.total()} runs", ("equivalent", "undecided", "different", "refused"), counts)
        bad += counts["different"] + counts["refused"]
    if not given.right:
        rows = chosen(WRONG)
        counts = outcomes(rows, lambda row: [(1, None)], judged, given.list, WRONG_AS_IT_SHOULD_BE)
        names = ("right cause", "right place", "found", "wrong cause", "undecided", "missed", "refused", "not to be seen")
        table(f"{len(rows)} planted mistakes", names, counts)
        bad += counts["missed"] + counts["wrong cause"] + counts["refused"]
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
