"""The site: the pages, the sources that they link to, and the API reference, put together by mkdocs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import api, links

_TEXT = {".cpp", ".h", ".cu", ".py", ".sh", ".txt", ".cmake", ""}  # shown as pages
_LANGUAGES = {".h": "cpp", ".cu": "cpp", ".py": "python", ".sh": "bash", ".cmake": "cmake"}  # other suffixes name their language


def _show(root, file, source):
    """A source file as a page."""
    name = file.relative_to(root)
    place = source / f"{name}.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    language = _LANGUAGES.get(file.suffix, file.suffix[1:] or "text")
    place.write_text(f"# {name}\n\n~~~~{language}\n{file.read_text()}\n~~~~\n")


def _for_links(root, page, source):
    """A page's text for the site. Copies linked files that are not pages into the site."""
    text = (root / page).read_text()
    for _, link, target, _ in links.links(root, page):
        place = source / target.relative_to(root)
        if target.is_dir() and not (target / "README.md").exists():
            files = sorted(file for file in target.iterdir() if file.is_file())
            for file in files:
                _show(root, file, source)
            (place / "README.md").write_text("\n".join(f"* [{file.name}]({file.name}.md)" for file in files))
        elif target.is_file() and target.suffix in _TEXT:
            _show(root, target, source)
            text = text.replace(f"]({link})", f"]({link}.md)")
        elif target.is_file() and target.suffix != ".md":
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, place)
    return text


def _line_for_site(line, page, listed):
    """Names of public headers lead to their pages."""
    up = "../" * page.count("/")
    return re.sub(r"(?<!\[)`([\w/]+\.h)`", lambda m: f"[`{m[1]}`]({up}api/{m[1]}.md)" if m[1] in listed else m[0], line)


def _stage(root, page, source, listed):
    lines, fenced = [], False
    for line in _for_links(root, page, source).split("\n"):
        fenced ^= line.startswith("```")
        if not re.fullmatch(r"<!-- .* -->", line):
            lines.append(line if fenced else _line_for_site(line, page, listed))
    place = source / page
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(lines))


def write(root, folder):
    """Writes folder/site; 1 if mkdocs or its highlighter is not there, or mkdocs finds something wrong."""
    if not shutil.which("mkdocs") or not shutil.which("pygmentize"):
        print("scripts/docs: mkdocs or pygmentize is not there; install them as root: apt-get install --no-install-recommends mkdocs "
              "python3-pygments")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    listed = {header.as_posix() for header in api.write(root, source / "api")}
    for page in links.pages(root):
        _stage(root, page, source, listed)
    shutil.copy(root / "scripts/pages/site.css", source / "docs")
    shutil.copy(root / "scripts/pages/mkdocs.yml", folder)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--config-file", folder / "mkdocs.yml"], env=environment)
    if done.returncode == 0:
        print(f"{folder}/site/index.html")
    return done.returncode
