"""Blocks of output in the pages, run again and compared. scripts/docs explains the marks and the masks."""

import difflib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import links

ROOT = Path(__file__).resolve().parents[2]
_MARK = re.compile(r"<!-- (output of|slow output of|not run): (.*\S) -->")
_BEFORE = re.compile(r"<!-- before: (.*\S) -->")
_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
_MASKS = [  # differences between two honest runs
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<date>"),
    (re.compile(r"\bisonorm \d+\.\d+\.\d+( \([0-9a-f]+\))?"), "<version>"),
    (re.compile(_NUMBER + r" ?(?:ns|us|ms|s|min|h|[kKMGT]i?B|[MGT]?FLOP)(?:/s)?(?![\w%])"), "<measured>"),
    (re.compile(r"\b\d+\.\d eps of (?=f64|f32|bf16)"), "<rounding> eps of "),
    (re.compile(r"\b\d+ % of (?=the bound|what rounding|its bound)"), "<rounding> of "),
    (re.compile(r"(?<![\w.])[+-]?(?:\d+(?:\.\d+)?e-(?:0[5-9]|[1-9]\d)|0(?:\.0+)?e\+00)\b"), "<rounding>"),
]
_DECIMAL = re.compile(r"(?<![\w.])[+-]?\d+\.\d+(?:e[+-]\d+)?(?![\w.])")
_SECONDS = 1800  # limit for one command


@dataclass
class Block:
    page: str
    line: int  # line number of the opening fence, from 1
    language: str
    mark: str  # "output of", "slow output of", "not run" or nothing; "before": a command that the page does not show
    about: str
    text: list


def of(root, page):
    lines, found, at = (Path(root) / page).read_text().split("\n"), [], 0
    while at < len(lines):
        if lines[at].startswith("```"):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            mark = _MARK.fullmatch(lines[at - 1]) if at else None
            found.append(Block(page, at + 1, lines[at][3:], *(mark.groups() if mark else ("", "")), lines[at + 1:end]))
            at = end
        elif before := _BEFORE.fullmatch(lines[at]):
            found.append(Block(page, at + 1, "", "before", before[1], []))
        at += 1
    return found


def tokens(text):
    """The words to compare: masked words are equal, and rules of tables have one length."""
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return re.sub(r"-{4,}", "---", text).split()


def _places(number):
    """(decimal places of the mantissa, one unit in the last of them) of a decimal fraction, with or without an exponent."""
    mantissa, _, exponent = number.partition("e")
    places = len(mantissa.split(".")[1])
    return places, 10.0 ** (int(exponent or 0) - places)


def _close(a, b):
    """The same word, but for one unit of the last place of each decimal fraction in it."""
    if a == b:
        return True
    if _DECIMAL.sub("#", a) != _DECIMAL.sub("#", b):
        return False
    for x, y in zip(_DECIMAL.findall(a), _DECIMAL.findall(b)):
        (places, unit), (others, other_unit) = _places(x), _places(y)
        if places != others or abs(float(x) - float(y)) > 1.5 * max(unit, other_unit):
            return False
    return True


def same(shown, printed):
    """True if the block has the printed lines; `...` matches any lines."""
    parts, part = [], []
    for line in [*shown, "..."]:
        if line.strip() == "...":
            parts.append(tokens("\n".join(part)))
            part = []
        else:
            part.append(line)
    words, at = tokens("\n".join(printed)), 0
    for i, want in enumerate(parts):
        last = i == len(parts) - 1
        starts = [len(words) - len(want)] if last and i else [at] if i == 0 else range(at, len(words) - len(want) + 1)
        at = next((s + len(want) for s in starts if at <= s and len(words) - s >= len(want) and
                   all(_close(a, b) for a, b in zip(want, words[s:s + len(want)]))), None)
        if at is None:
            return False
    return at == len(words)


def _run(command, folder, build):
    path = f"{build / 'tools'}:{os.environ['PATH']}"
    environment = {k: v for k, v in os.environ.items() if k != "ISONORM_PROFILE"} | {
        "PATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "140", "ROOT": str(ROOT)}
    try:
        done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return [f"(longer than {_SECONDS} s)"]
    return done.stdout.rstrip("\n").split("\n")


def printed(block, folder, build):
    """The present content of the block: its commands, if it shows any, each with its output."""
    commands = [line[2:] for line in block.text if line.startswith("$ ")]
    if not commands:
        return _run(block.about, folder, build)
    return [line for command in commands for line in [f"$ {command}", *_run(command, folder, build)]]


def _link_examples(folder, build):
    """Makes `build/release/examples/NAME` lead to the tested build."""
    (Path(folder) / "build").mkdir()
    (Path(folder) / "build/release").symlink_to(build)


def _rewrite(root, block, lines):
    path = Path(root) / block.page
    text = path.read_text().split("\n")
    text[block.line:block.line + len(block.text)] = lines
    path.write_text("\n".join(text))


def _wrong_of_page(root, page, build, marks, update):
    wrong, moved = [], 0
    with tempfile.TemporaryDirectory() as folder:
        _link_examples(folder, build)
        for block in of(root, page):
            block.line += moved
            where = f"{page}:{block.line}"
            if not block.language and not block.mark:
                wrong.append(f"{where}: whose output is this, or why is it not run? (scripts/docs --help)")
            if block.mark not in marks:
                continue
            now = printed(block, folder, build)
            if block.mark == "before":
                wrong += [f"{where}: {block.about}: {line}" for line in now if line]
                continue
            if same(block.text, now):
                continue
            if update and "..." not in block.text:
                _rewrite(root, block, now)
                moved += len(now) - len(block.text)
                print(f"{where}: rewritten")
                continue
            difference = difflib.unified_diff(block.text, now, "shown", "printed", lineterm="", n=1)
            wrong.append(f"{where}: {block.about}: something else is printed now\n" + "\n".join(f"    {line}" for line in difference))
    return wrong


def wrong(root, pages, build, quick=False, update=False):
    """A message for each block that differs from its command's output, or has no mark; quick: slow blocks are left out."""
    marks = ["output of"] if quick else ["output of", "slow output of"]
    return [message for page in pages for message in _wrong_of_page(root, page, build, ["before", *marks], update)]


def show_unchecked(root):
    for page in links.pages(root):
        for block in of(root, page):
            if block.mark in ("not run", "slow output of"):
                print(f"{page}:{block.line}: {'slow: ' if block.mark != 'not run' else ''}{block.about}")
    return 0
