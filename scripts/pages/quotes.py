"""Code that pages quote: is it in the file that they name, and does a page name all that it promises to?

A block of C++ whose line `// core/formulas/pointwise.h` names a file quotes that file, up to the next such line; a line `...` stands for any
lines between two parts. Comments and white space may differ. `<!-- every line with: REGEX -->` says that the page quotes every line of C++
in which REGEX is found; `<!-- every file with: REGEX -->` says that it names every source file in which REGEX is found."""

import functools
import re
from pathlib import Path

from . import blocks

_HEAD = re.compile(r"\s*// ((?:[\w.-]+/)+[\w.-]+\.\w+)(?:,.*)?")
_RULE = re.compile(r"<!-- every (line|file) with: (.*\S) -->")
_SOURCES = {".h", ".cpp", ".cu", ".cuh", ".cmake", ".txt", ".py"}


def _code(text):
    """The text without comments of C++ and white space."""
    return re.sub(r"\s+", "", re.sub(r"(?m)(?:^|\s)//.*$", "", text))


@functools.lru_cache(maxsize=None)
def _code_of(path):
    return _code(path.read_text())


@functools.lru_cache(maxsize=None)
def _sources(root):
    found = (path for path in sorted(root.rglob("*")) if path.suffix in _SOURCES)
    return [path for path in found if not any(part.startswith((".", "build")) for part in path.relative_to(root).parts)]


def quotes(root, page):
    """(line number, file, text) of each quote of a page."""
    for block in blocks.of(root, page):
        file, start, part = None, 0, []
        for number, line in enumerate([*block.text, "..."] if block.language in ("cpp", "cmake") else [], block.line + 1):
            head = _HEAD.fullmatch(line)
            if head or line.strip() == "...":
                if file and _code("\n".join(part)):
                    yield start, file, "\n".join(part)
                file, start, part = head[1] if head else file, number, []
            else:
                part.append(line)


def _missing(root, page, kind, pattern, quoted):
    text = (root / page).read_text()
    for path in _sources(root):
        name = path.relative_to(root).as_posix()
        if kind == "file":
            if f"`{name}`" not in text and re.search(pattern, path.read_text(errors="replace")):
                yield f"{name} is not named, and has {pattern}"
        elif path.suffix in (".h", ".cpp", ".cu", ".cuh"):
            for number, line in enumerate(path.read_text().split("\n"), 1):
                if re.search(pattern, line) and _code(line) not in quoted:
                    yield f"{name}:{number} is not quoted, and has {pattern}"


def wrong(root, pages):
    """A message for each quote that is not in its file, and for each line or file that a page promises and lacks."""
    root, messages = Path(root), []
    for page in pages:
        found = list(quotes(root, page))
        for line, file, text in found:
            if not (root / file).is_file():
                messages.append(f"{page}:{line}: there is no file {file}")
            elif _code(text) not in _code_of(root / file):
                messages.append(f"{page}:{line}: {file} does not have these lines")
        quoted = "".join(_code(text) + "\n" for _, _, text in found)
        for kind, pattern in _RULE.findall((root / page).read_text()):
            messages += [f"{page}: {what}" for what in _missing(root, page, kind, pattern, quoted)]
    return messages
