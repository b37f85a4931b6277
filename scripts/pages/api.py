"""The API reference: a page for each public header, made of its comments and declarations."""

import re

_OUTSIDE = re.compile(r"#|namespace .*\{$|\}|extern \"C\"|(class|struct|enum class) [\w:]+( : \w+)?;")  # not an entry
_NAMED = re.compile(r"\b(?:class|struct|enum class|enum|concept|using|namespace)\s+(\w+)")


# The index's headings, users' headings first. A header belongs to the heading with the longest matching folder.
_SECTIONS = {
    "Models": ["nn", "streams"],
    "Training": ["training", "optim", "io/data", "io/tokenizers"],
    "Tensors and functions": ["core", "autograd"],
    "Equivalence tests": ["equivalence", "reports"],
    "Files": ["io", "exchange"],
    "Several processes, GPUs": ["distributed", "gpu"],
    "Inside: kernels and memory": ["core/formulas", "core/kernels", "core/memory", "core/system", "autograd/fused"],
}


def headers(root):
    """The public headers, as paths from the root: as cmake/library.cmake installs them."""
    listed = re.search(r"file\(GLOB_RECURSE headers (.*?)\)", (root / "cmake/library.cmake").read_text(), re.DOTALL)
    for folder, name in re.findall(r"([\w/]+)/([\w*]+\.h)", listed[1]):
        for path in sorted((root / folder).rglob(name)):
            header = path.relative_to(root)
            if not path.read_text().startswith("// Internal: ") and header.parts[:2] != ("core", "cpu"):
                yield header


def _without_private(code):
    """A class as users see it."""
    kept, hidden = [], False
    for line in code:
        if access := re.match(r"( *)(public|protected|private):$", line):
            hidden, indent = access[2] == "private", len(access[1]) - 1
        elif hidden and line.startswith(" " * indent + "}"):
            hidden = False
        if not hidden:
            kept.append(line)
    while len(kept) > 1 and not kept[-2].strip():
        del kept[-2]
    return kept


def _names(code):
    """The declaration of an entry, for its heading."""
    names = []
    for line in code:
        if line.startswith((" ", "}", "//")):
            continue
        line = re.sub(r"^template <.*?> (?=\w)", "", line)
        line = re.sub(r"^extern template ", "", line)
        if named := _NAMED.match(line) or re.search(r"(operator\S+|~?\w+)\(", line) or re.search(r"(\w+)(?:<.*>)?(?: =|\[|\{|;|\()", line):
            names.append(named[1])
    return list(dict.fromkeys(names))


def entries(text):
    """(comment, code) of each declaration outside of classes; a declaration without a comment shares the previous one's."""
    found, comment, code, depth, apart = [], [], [], 0, True
    for line in text.split("\n"):
        if depth == 0 and not code:
            if not line.strip() or _OUTSIDE.match(line):
                apart, comment = True, []
                continue
            if line.startswith("//"):
                comment.append(line[3:])
                continue
        code.append(line)
        bare = re.sub(r"//.*|\"(\\.|[^\"\\])*\"|'\\?.'", "", line)
        depth += sum(bare.count(c) for c in "({[") - sum(bare.count(c) for c in ")}]")
        if depth == 0 and bare.rstrip().endswith((";", "}")):
            if found and not comment and not apart:
                found[-1][1].extend(code)
            else:
                found.append((comment, code))
            comment, code, apart = [], [], False
    return found


def page(root, header):
    """A header as Markdown."""
    lines = (root / header).read_text().split("\n")
    head = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    out = [f"# {header}", "", *_prose(line[3:] for line in lines[:head]), "", "```cpp", f"#include <isonorm/{header}>", "```", ""]
    for comment, code in entries("\n".join(lines[head:])):
        out += [f"## {', '.join(f'`{name}`' for name in _names(code)) or 'declarations'}", "", *_prose(comment), "", "```cpp",
                *_without_private(code), "```", ""]
    return "\n".join(out)


def _prose(comment):
    """A comment as Markdown: indented lines are code, and everything that is not markup is escaped."""
    code = False
    for line in comment:
        if code != line.startswith("  "):
            code = not code
            yield ""
        if not code:
            parts = line.split("`")
            parts[::2] = [re.sub(r"([*_<\[\]#|])", r"\\\1", part) for part in parts[::2]]
        yield "    " + line if code else "`".join(parts)


def _section(header):
    """The heading of a header in the index. Throws StopIteration if no heading has its folder."""
    of_folder = {folder: title for title, folders in _SECTIONS.items() for folder in folders}
    return next(of_folder[str(parent)] for parent in header.parents if str(parent) in of_folder)


def write(root, folder):
    """Writes all pages and their index; returns the headers."""
    listed = list(headers(root))
    index = {title: [] for title in _SECTIONS}
    for header in listed:
        target = folder / f"{header}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(root, header))
        first = (root / header).read_text().split("\n")[0][3:]
        index[_section(header)].append(f"* [{header}]({header}.md): {''.join(_prose([first]))}")
    out = ["# Public headers", "", "`#include <isonorm/isonorm.h>` has all of them."]
    for title, lines in index.items():
        out += ["", f"## {title}", "", *lines]
    (folder / "README.md").write_text("\n".join(out) + "\n")
    return listed
