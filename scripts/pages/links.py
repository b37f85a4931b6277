"""The pages of the repository, and the links between them: each leads to a file that is there, and to a heading that it has."""

import functools
import re
from pathlib import Path
from urllib.parse import unquote

_SOURCE = re.compile(r"(?:[\w.-]+/)+[\w.-]+\.(?:h|cpp|cu|md|py|sh|cmake|txt|html|svg)")
_LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")


def pages(root):
    """All Markdown files of the sources, as paths from the root."""
    found = (path.relative_to(root) for path in Path(root).rglob("*.md"))
    return sorted(p.as_posix() for p in found if not any(part.startswith((".", "build")) for part in p.parts))


def outside_code(text):
    """The lines of a page, numbered from 1. Lines of fences and indented blocks are empty; code within a line is dropped."""
    lines, fenced, blank = [], False, True
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        code = fenced or fence or (blank and line.startswith("    "))
        fenced ^= fence
        blank = line.strip() == "" or (blank and code)
        lines.append("" if code else re.sub(r"(`+).*?\1", "", line))
    return lines


def slug(heading, _separator="-"):
    """The anchor that GitHub gives a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


@functools.lru_cache(maxsize=None)
def anchors(page):
    found, fenced = set(), False
    for line in page.read_text().split("\n"):
        fenced ^= line.startswith("```")
        if heading := re.match(r"#{1,6} +(.*)", line) if not fenced else None:
            name, number = slug(heading[1]), 0
            while (unique := f"{name}-{number}" if number else name) in found:
                number += 1
            found.add(unique)
        found.update(re.findall(r"""<a (?:id|name)=["']([^"']+)""", line))
    return found


def links(root, page):
    """(line, link, target as a path, anchor) of each link of a page that stays in the repository."""
    path = Path(root) / page
    for number, line in enumerate(outside_code(path.read_text()), 1):
        for link in _LINK.findall(line):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = unquote(link).partition("#")
            yield number, link, (path.parent / target).resolve() if target else path.resolve(), anchor


def sources(root, page):
    """(line, path) of each file path that a page has as code, relative to the root or to the page's folder."""
    for number, line in enumerate((Path(root) / page).read_text().split("\n"), 1):
        for code in re.findall(r"`([^`\s]+)`", line):
            if _SOURCE.fullmatch(code):
                yield number, code


def broken(root, which):
    wrong = []
    for page in which:
        for number, code in sources(root, page):
            if not any((folder / code).exists() for folder in (Path(root), (Path(root) / page).parent)):
                wrong.append(f"{page}:{number}: `{code}`: there is no such file")
        for number, link, target, anchor in links(root, page):
            if not target.exists() or Path(root) not in [target, *target.parents]:
                wrong.append(f"{page}:{number}: {link}: there is no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                wrong.append(f"{page}:{number}: {link}: the page has no such heading")
    return wrong
