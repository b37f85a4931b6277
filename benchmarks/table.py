"""The figures of scripts/bench as text for the terminal."""

import textwrap

WIDTH = 28  # minimum width of the first column


def number(x, decimals=None):
    """Three significant digits, or `decimals` decimals, without an exponent."""
    if decimals is not None:
        return f"{x:.{decimals}f}"
    if abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}" if abs(x) >= 1 else f"{x:.3f}"


def unit(group):
    """The unit of a group's values, and whether higher or lower is better."""
    return group["unit"] + (f", {group['better']} is better" if group["better"] else "")


def line(first, cells, width=WIDTH):
    return (f"{first:{width}}" + "".join(f"{text:>{width}}" for text, width in cells)).rstrip()


def aim_text(aim):
    return f"{aim[0]} {aim[1]:g}" if aim else ""


def sign(aim):
    return f"{'<=' if aim[0] == 'at most' else '>='} {aim[1]:g}"


def reached(aim, value):
    """Whether a value meets its aim; None without an aim or a value."""
    if not aim or value is None:
        return None
    return value <= aim[1] if aim[0] == "at most" else value >= aim[1]


def compared(group):
    """The series that have ratios."""
    return [s for s in group["series"] if any(s in row["ratios"] for row in group["rows"])]


def bars(group):
    ratios = compared(group)
    headings = group["series"] + [group["ratio"].format(s).removeprefix("ours ") for s in ratios]
    widths = [max(10, len(h) + 2) for h in headings]
    names = [f"  {row['name']}  {row['detail']}" for row in group["rows"]]
    first = max(WIDTH, *(len(name) for name in names))
    show = lambda name, texts: line(name, list(zip(texts, widths)), first)
    yield show("", headings)
    for name, row in zip(names, group["rows"]):
        values = [number(row["values"][s], group["decimals"]) if s in row["values"] else "" for s in group["series"]]
        quotients = [f"{row['ratios'][s]:.2f}" if s in row["ratios"] else "" for s in ratios]
        aim = f"   aim: {sign(row['aim'])}" if row["aim"] else ""
        yield show(name, values + quotients) + aim
    if group["aims"]:
        aims = {s: sign(aim) for s, aim in group["aims"].items()}
        yield show("  aim", ["" if s in ratios else aims.get(s, "") for s in group["series"]]
                   + [aims.get(s, "") for s in ratios])


def shares(group):
    """Series down, rows across; series below 1 % in every row are summed up."""
    names = [row["name"] for row in group["rows"]]
    yield line("", [(name, 12) for name in names])
    shown = [s for s in group["series"] if any(row["values"].get(s, 0) >= 1 for row in group["rows"])]
    for s in shown:
        yield line(f"  {s}", [(f"{row['values'].get(s, 0):.1f}", 12) for row in group["rows"]])
    rest = [sum(v for s, v in row["values"].items() if s not in shown) for row in group["rows"]]
    yield line("  other", [(f"{r:.1f}", 12) for r in rest])


def text(results):
    lines = [f"{name:12} {value}" for name, value in results["environment"].items()]
    lines += [f"\nWARNING: {warning}" for warning in results["warnings"]]
    lines += ["\n/ eager, / compile, ...: ours divided by that side; below 1, ours is faster or smaller"]
    for group in results["groups"]:
        note = f" ({group['note'].rstrip('.')})" if group["note"] else ""
        lines += textwrap.wrap(f"{group['title']}, {unit(group)}{note}", 120, initial_indent="\n", subsequent_indent="  ")
        lines += (shares if group["kind"] == "shares" else bars)(group)
    return "\n".join(lines)
