"""Writes the recipes of a page of docs/ as a C++ program: source.py PAGE OUTPUT...

Each ```cpp block after "## How do I ..." or "**How do I ...**" becomes a function, in one of the OUTPUT files. The first block of the page is
what all recipes share. A line that prints ends with its value, "std::cout << x << '\\n';  // 3": the program compares both.
"""

import re
import sys
from pathlib import Path

TITLE = re.compile(r"^(?:#+ |\*\*)(.+?\?)(?:\*\*)?\s*$")
PRINTS = re.compile(r"std::cout")
PRINTED = re.compile(r"//\s?(.+)$")


def recipes(page):
    """(title, line number, lines of code) of each block, the shared one without a title first."""
    found, title, block, start = [], None, None, 0
    for number, line in enumerate(page.split("\n"), 1):
        if block is not None and line.startswith("```"):
            found.append((title, start, block))
            block = None
        elif block is not None:
            block.append(line)
        elif line.startswith("```cpp"):
            block, start = [], number + 1
        elif match := TITLE.match(line):
            title = match[1]
    return found


def expected(title, lines):
    values = []
    for line in lines:
        if PRINTS.search(line):
            match = PRINTED.search(line)
            if not match:
                sys.exit(f"cookbook: {title}: this line prints and does not say what: {line}")
            values.append(match[1].strip())
    return values


def literal(text):
    return 'R"__(' + text + ')__"'


def program(page_path, outputs):
    (_, shared_line, shared), *found = recipes(page_path.read_text())
    if not found:
        sys.exit(f"cookbook: {page_path} has no recipe")
    name = page_path.resolve().as_posix()
    head = [f'#line {shared_line} "{name}"'] + shared
    for part, output in enumerate(outputs):
        lines = ['#include "tests/cookbook/check.h"'] + head
        for i, (title, start, block) in enumerate(found[part::len(outputs)]):
            lines += [f"static void recipe_{i}() {{", f'#line {start} "{name}"'] + block + ["}"]
            values = ", ".join(literal(v) for v in expected(title, block))
            lines += [f"static const cookbook::Recipe entry_{i}({literal(page_path.name)}, {literal(title)}, {start}, recipe_{i}, {{{values}}});"]
        output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    program(Path(sys.argv[1]), [Path(p) for p in sys.argv[2:]])
